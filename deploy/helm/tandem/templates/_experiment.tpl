{{/* The pipeline.config as the pods see it: every label_map_path names the chart's label map. */}}
{{- define "tandem.pipelineConfig" -}}
{{- $text := .Values.experiment.pipelineConfig -}}
{{- if .Values.experiment.labelMap -}}
{{- regexReplaceAll (include "tandem.labelMapField" .) $text "label_map_path: \"/etc/tandem/label_map.pbtxt\"" -}}
{{- else -}}
{{- $text -}}
{{- end -}}
{{- end }}

{{/*
A label_map_path of a text proto, as a pattern. Its value may be several strings of either quote, one
after the other, with escapes in them; what lies between the parts are spaces and comments.
*/}}
{{- define "tandem.labelMapField" -}}
{{- $gap := `(?:\s|#[^\n]*\n)*` -}}
{{- $string := `(?:"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')` -}}
{{- printf `\blabel_map_path%s:%s%s(?:%s%s)*` $gap $gap $string $gap $string -}}
{{- end }}

{{/* Changes with whatever the pods read from the ConfigMap. */}}
{{- define "tandem.configChecksum" -}}
{{- list (include "tandem.pipelineConfig" .) .Values.experiment.labelMap | toJson | sha256sum -}}
{{- end }}

{{/* Flags that every program of the image takes for the experiment. */}}
{{- define "tandem.configFlags" -}}
- --config=/etc/tandem/pipeline.config
{{- range .Values.experiment.overrides }}
- {{ printf "--override=%s" . | quote }}
{{- end }}
{{- end }}

{{/* Flags that trainer and evaluator share. */}}
{{- define "tandem.processFlags" -}}
- {{ printf "--run=%s" (include "tandem.run" .) | quote }}
{{ include "tandem.configFlags" . }}
- {{ printf "--metrics-host=%s" .Values.metrics.host | quote }}
- --metrics-port={{ int64 .Values.metrics.port }}
- --log-format={{ .Values.log.format }}
- --log-level={{ .Values.log.level }}
{{- end }}

{{/* Flags by which a process finds itself in the Kubernetes API; none without rights there. */}}
{{- define "tandem.clusterFlags" -}}
- --namespace={{ .Release.Namespace }}
- --pod=$(POD_NAME)
{{- end }}

{{/* Flags from a map of settings: checkpointEveryN: 100 is --checkpoint-every-n=100. */}}
{{- define "tandem.settingFlags" -}}
{{- range $name, $value := . }}
{{- $flag := $name | snakecase | replace "_" "-" }}
{{- if kindIs "slice" $value }}
{{- range $value }}
- {{ printf "--%s=%v" $flag . | quote }}
{{- end }}
{{- else if kindIs "bool" $value }}
- --{{ ternary "" "no-" $value }}{{ $flag }}
{{- else if kindIs "float64" $value }}
{{- /* Helm reads numbers as floats, and would write 1000000 as 1e+06. */}}
- --{{ $flag }}={{ if eq (floor $value) $value }}{{ int64 $value }}{{ else }}{{ $value }}{{ end }}
{{- else }}
- {{ printf "--%s=%v" $flag $value | quote }}
{{- end }}
{{- end }}
{{- end }}
