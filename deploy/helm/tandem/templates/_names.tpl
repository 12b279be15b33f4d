{{/* The release's name, short enough for what is appended: a JobSet's pods have the longest names. */}}
{{- define "tandem.fullname" -}}
{{- $name := .Values.nameOverride | default .Release.Name -}}
{{- if gt (len $name) 26 -}}
{{- printf "%s-%s" ($name | trunc 19 | trimSuffix "-") ($name | sha256sum | trunc 6) -}}
{{- else -}}
{{- $name -}}
{{- end -}}
{{- end }}

{{- define "tandem.serviceAccountName" -}}
{{- if .Values.serviceAccount.name -}}
{{- .Values.serviceAccount.name -}}
{{- else if .Values.serviceAccount.create -}}
{{- include "tandem.fullname" . -}}
{{- else -}}
default
{{- end -}}
{{- end }}

{{/* What selects pods; never changes within a release. */}}
{{- define "tandem.selectorLabels" -}}
app.kubernetes.io/name: tandem
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* Labels of an object (not of pods, which a new chart version alone should not replace). */}}
{{- define "tandem.labels" -}}
{{- $standard := dict
  "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_")
  "app.kubernetes.io/name" "tandem"
  "app.kubernetes.io/instance" .root.Release.Name
  "app.kubernetes.io/version" .root.Chart.AppVersion
  "app.kubernetes.io/part-of" "tandem"
  "app.kubernetes.io/managed-by" .root.Release.Service
-}}
{{- with .component }}{{ $_ := set $standard "app.kubernetes.io/component" . }}{{ end -}}
{{- $own := .labels | default dict -}}
{{- merge $standard $own .root.Values.commonLabels | toYaml -}}
{{- end }}

{{/* The metadata of an object: root, name, and optionally component, labels, annotations. */}}
{{- define "tandem.metadata" -}}
{{- $annotations := merge (dict) (.annotations | default dict) .root.Values.commonAnnotations -}}
name: {{ .name | quote }}
namespace: {{ .root.Release.Namespace | quote }}
labels:
  {{- include "tandem.labels" . | nindent 2 }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "tandem.configMapName" -}}
{{ include "tandem.fullname" . }}-experiment
{{- end }}

{{- define "tandem.claimName" -}}
{{- .Values.runStore.pvc.existingClaim | default (printf "%s-run" (include "tandem.fullname" .)) -}}
{{- end }}

{{/* The run folder that trainer, evaluator and TensorBoard share. */}}
{{- define "tandem.run" -}}
{{- $pvc := .Values.runStore.pvc -}}
{{- if $pvc.enabled -}}
{{- printf "%s/%s" (trimSuffix "/" $pvc.mountPath) ($pvc.folder | default .Release.Name) -}}
{{- else -}}
{{- .Values.runStore.url -}}
{{- end -}}
{{- end }}

{{/* Image of a component: root, component ("trainer", "evaluator" or "tensorboard"). */}}
{{- define "tandem.image" -}}
{{- $values := index .root.Values .component -}}
{{- $image := .root.Values.image -}}
{{- $own := $values.image -}}
{{- $version := .root.Chart.AppVersion -}}
{{- $repository := $own.repository | default $image.repository -}}
{{- $tag := $own.tag -}}
{{- $digest := $own.digest -}}
{{- if eq .component "tensorboard" -}}
  {{- $repository = $own.repository | default (printf "%s-tensorboard" $image.repository) -}}
  {{- $tag = $tag | default $image.tag | default $version -}}
{{- else -}}
  {{- $tag = $tag | default $image.tag | default (printf "%s-%s" $version $values.accelerator.type) -}}
  {{- $digest = $digest | default (ternary "" $image.digest (or (not (empty $own.repository)) (not (empty $own.tag)))) -}}
{{- end -}}
{{- if $digest -}}
{{- printf "%s@%s" $repository $digest -}}
{{- else -}}
{{- printf "%s:%s" $repository $tag -}}
{{- end -}}
{{- end }}
