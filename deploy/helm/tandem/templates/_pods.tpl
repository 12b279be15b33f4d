{{/*
Parts of pods. Each takes a dict: root, component ("trainer", "evaluator", "tensorboard") and values,
which are the component's own.
*/}}

{{- define "tandem.podLabels" -}}
{{- $selector := include "tandem.selectorLabels" . | fromYaml -}}
{{- merge $selector .values.podLabels | toYaml -}}
{{- end }}

{{- define "tandem.podAnnotations" -}}
{{- $annotations := dict -}}
{{- if ne .component "tensorboard" -}}
{{- $_ := set $annotations "kubectl.kubernetes.io/default-container" .component -}}
{{- $_ := set $annotations "checksum/experiment" (include "tandem.configChecksum" .root) -}}
{{- $annotations = merge $annotations (include "tandem.datasetAnnotations" .root | fromYaml) -}}
{{- end -}}
{{- merge $annotations .values.podAnnotations | toYaml -}}
{{- end }}

{{/* Annotations without which a pod's datasets are not mounted. */}}
{{- define "tandem.datasetAnnotations" -}}
{{- range .Values.datasets }}
{{- if .gcsFuse }}
gke-gcsfuse/volumes: "true"
{{- break }}
{{- end }}
{{- end }}
{{- end }}

{{- define "tandem.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: {{ int64 .Values.podSecurity.runAsUser }}
runAsGroup: {{ int64 .Values.podSecurity.runAsGroup }}
fsGroup: {{ int64 .Values.podSecurity.fsGroup }}
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "tandem.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* What every pod says before its containers; needsToken: whether it calls the Kubernetes API. */}}
{{- define "tandem.podSpec" -}}
serviceAccountName: {{ include "tandem.serviceAccountName" .root | quote }}
automountServiceAccountToken: {{ .needsToken }}
enableServiceLinks: false # else Services become TANDEM_... variables, which are no settings
securityContext:
  {{- include "tandem.podSecurityContext" .root | nindent 2 }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- include "tandem.placement" .values }}
{{- end }}

{{/* Variables of trainer and evaluator. */}}
{{- define "tandem.env" -}}
- name: HOME
  value: /tmp
- name: TMPDIR
  value: /scratch
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: TANDEM_IMAGE
  value: {{ include "tandem.image" . | quote }}
{{- with include "tandem.extraEnv" . }}
{{ . }}
{{- end }}
{{- end }}

{{/* Variables from the values: a component's own replace those of the same name that all have. */}}
{{- define "tandem.extraEnv" -}}
{{- $own := list -}}
{{- range .values.extraEnv }}{{ $own = append $own .name }}{{ end -}}
{{- $variables := list -}}
{{- range .root.Values.extraEnv -}}
{{- if not (has .name $own) }}{{ $variables = append $variables . }}{{ end -}}
{{- end -}}
{{- with concat $variables .values.extraEnv }}{{ toYaml . }}{{ end -}}
{{- end }}

{{- define "tandem.volumeMounts" -}}
- name: experiment
  mountPath: /etc/tandem
  readOnly: true
- name: tmp
  mountPath: /tmp
- name: scratch
  mountPath: /scratch
{{- if .values.shm.size }}
- name: shm
  mountPath: /dev/shm
{{- end }}
{{- with .root.Values.runStore.pvc }}
{{- if .enabled }}
- name: run
  mountPath: {{ .mountPath | quote }}
{{- end }}
{{- end }}
{{- range .root.Values.datasets }}
- name: {{ printf "data-%s" .name | quote }}
  mountPath: {{ .mountPath | quote }}
  readOnly: true
  {{- with .pvc }}
  {{- with .subPath }}
  subPath: {{ . | quote }}
  {{- end }}
  {{- end }}
{{- end }}
{{- with .values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "tandem.volumes" -}}
- name: experiment
  configMap:
    name: {{ include "tandem.configMapName" .root | quote }}
- name: tmp
  emptyDir:
    sizeLimit: 1Gi
{{ include "tandem.scratchVolume" .values.scratch }}
{{- with .values.shm.size }}
- name: shm
  emptyDir:
    medium: Memory
    sizeLimit: {{ . | quote }}
{{- end }}
{{- if .root.Values.runStore.pvc.enabled }}
{{ include "tandem.runVolume" .root }}
{{- end }}
{{- range .root.Values.datasets }}
{{ include "tandem.dataVolume" . }}
{{- end }}
{{- with .values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "tandem.scratchVolume" -}}
- name: scratch
  {{- if .storageClassName }}
  ephemeral:
    volumeClaimTemplate:
      spec:
        accessModes: [ReadWriteOnce]
        storageClassName: {{ .storageClassName | quote }}
        resources:
          requests:
            storage: {{ .size | quote }}
  {{- else }}
  emptyDir:
    sizeLimit: {{ .size | quote }}
  {{- end }}
{{- end }}

{{- define "tandem.runVolume" -}}
- name: run
  persistentVolumeClaim:
    claimName: {{ include "tandem.claimName" . | quote }}
{{- end }}

{{- define "tandem.dataVolume" -}}
- name: {{ printf "data-%s" .name | quote }}
  {{- with .pvc }}
  persistentVolumeClaim:
    claimName: {{ .claimName | quote }}
    readOnly: true
  {{- end }}
  {{- with .gcsFuse }}
  csi:
    driver: gcsfuse.csi.storage.gke.io
    readOnly: true
    volumeAttributes:
      bucketName: {{ .bucket | quote }}
      mountOptions: {{ .mountOptions | default "implicit-dirs" | quote }}
  {{- end }}
{{- end }}

{{/* Resources with the accelerator, and room on the node's disk for an emptyDir. */}}
{{- define "tandem.resources" -}}
{{- $requests := merge (dict) (.values.resources.requests | default dict) -}}
{{- $limits := merge (dict) (.values.resources.limits | default dict) -}}
{{- if not .values.scratch.storageClassName -}}
{{- $requests = merge $requests (dict "ephemeral-storage" .values.scratch.size) -}}
{{- end -}}
{{- $limits = merge $limits (include "tandem.acceleratorLimits" .values.accelerator | fromYaml) -}}
requests:
  {{- toYaml $requests | nindent 2 }}
{{- with $limits }}
limits:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The programs' own word on whether they get on: compiling the first step is waited for. */}}
{{- define "tandem.probes" -}}
startupProbe:
  httpGet:
    path: /healthz
    port: metrics
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: {{ div (add (int .values.probes.startupSeconds) 4) 5 }}
livenessProbe:
  httpGet:
    path: /healthz
    port: metrics
  periodSeconds: 20
  timeoutSeconds: 10
  failureThreshold: 3
readinessProbe:
  httpGet:
    path: /healthz
    port: metrics
  periodSeconds: 10
  timeoutSeconds: 10
{{- end }}

{{/* The rest of a container of the test pod. */}}
{{- define "tandem.testContainer" -}}
image: {{ include "tandem.image" . | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
env:
  {{- include "tandem.env" . | nindent 2 }}
resources:
  {{- include "tandem.resources" . | nindent 2 }}
securityContext:
  {{- include "tandem.containerSecurityContext" .root | nindent 2 }}
volumeMounts:
  {{- include "tandem.volumeMounts" . | nindent 2 }}
{{- end }}
