{{/* Pods of a component that runs on one TPU slice: hosts = chips of the topology / chips of a host. */}}
{{- define "tandem.tpuHosts" -}}
{{- $tpu := .tpu -}}
{{- range $name, $example := dict "type" "tpu-v5-lite-podslice" "topology" "2x4" "chipsPerHost" "4" -}}
{{- if not (index $tpu $name) -}}
{{- fail (printf "\n\n%s.accelerator.tpu.%s is not given; expected a value such as %s for accelerator.type tpu\n" $.component $name $example) -}}
{{- end -}}
{{- end -}}
{{- if not (regexMatch "^[1-9][0-9]*(x[1-9][0-9]*){1,2}$" $tpu.topology) -}}
{{- fail (printf "\n\n%s.accelerator.tpu.topology is %s; expected chips in two or three directions, as 2x4 or 2x2x1\n" .component $tpu.topology) -}}
{{- end -}}
{{- $chips := 1 -}}
{{- range splitList "x" $tpu.topology }}{{ $chips = mul $chips (int .) }}{{ end -}}
{{- if mod $chips (int $tpu.chipsPerHost) -}}
{{- fail (printf "\n\n%s.accelerator.tpu: topology %s has %d chips, which chipsPerHost %d does not divide; expected the number of chips that one host of this machine type has, often 4\n" .component $tpu.topology $chips (int $tpu.chipsPerHost)) -}}
{{- end -}}
{{- div $chips (int $tpu.chipsPerHost) -}}
{{- end }}

{{/* Trainer pods: hosts of the TPU slice, or trainer.workers. */}}
{{- define "tandem.trainerPods" -}}
{{- $accelerator := .Values.trainer.accelerator -}}
{{- if eq $accelerator.type "tpu" -}}
{{- include "tandem.tpuHosts" (dict "component" "trainer" "tpu" $accelerator.tpu) -}}
{{- else -}}
{{- int .Values.trainer.workers -}}
{{- end -}}
{{- end }}

{{/* What the accelerator adds to a container's limits. */}}
{{- define "tandem.acceleratorLimits" -}}
{{- if eq .type "gpu" -}}
nvidia.com/gpu: {{ int64 .gpu.count }}
{{- else if eq .type "tpu" -}}
google.com/tpu: {{ int64 .tpu.chipsPerHost }}
{{- end -}}
{{- end }}

{{/* Where pods of a component may run: node selector, tolerations, affinity and the rest. */}}
{{- define "tandem.placement" -}}
{{- $values := . -}}
{{- $selector := dict -}}
{{- $tolerations := list -}}
{{- with .accelerator -}}
  {{- if eq .type "gpu" -}}
    {{- with .gpu.model }}{{ $_ := set $selector "cloud.google.com/gke-accelerator" . }}{{ end -}}
    {{- $tolerations = append $tolerations (dict "key" "nvidia.com/gpu" "operator" "Exists" "effect" "NoSchedule") -}}
  {{- else if eq .type "tpu" -}}
    {{- $_ := set $selector "cloud.google.com/gke-tpu-accelerator" .tpu.type -}}
    {{- $_ := set $selector "cloud.google.com/gke-tpu-topology" .tpu.topology -}}
    {{- $tolerations = append $tolerations (dict "key" "google.com/tpu" "operator" "Exists" "effect" "NoSchedule") -}}
  {{- end -}}
{{- end -}}
{{- if .spot -}}
  {{- $_ := set $selector "cloud.google.com/gke-spot" "true" -}}
  {{- $tolerations = append $tolerations (dict "key" "cloud.google.com/gke-spot" "operator" "Equal" "value" "true" "effect" "NoSchedule") -}}
{{- end -}}
{{- with merge (dict) .nodeSelector $selector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with concat $tolerations .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- end }}
