{{/* Seconds from SIGTERM to SIGKILL; spot nodes of GKE allow pods 15. */}}
{{- define "tandem.graceSeconds" -}}
{{- .terminationGracePeriodSeconds | default (ternary 15 30 .spot) | int -}}
{{- end }}

{{/* Seconds that the trainer has for its last checkpoint: 12 on spot, else grace less 5. */}}
{{- define "tandem.deadlineSeconds" -}}
{{- $grace := int (include "tandem.graceSeconds" .) -}}
{{- .terminationDeadlineSeconds | default (ternary (sub (min $grace 15) 3) (sub $grace 5) .spot) | int -}}
{{- end }}

{{/* Who restarts the trainer: the same release goes on at once, another one is refused. */}}
{{- define "tandem.owner" -}}
{{- .Values.trainer.owner | default (printf "release %s/%s" .Release.Namespace .Release.Name) -}}
{{- end }}

{{/*
Name of the trainer's Job or JobSet. A pod template can't be changed in place, so the name carries a
hash of all that is fixed in it: an upgrade that changes it makes a new Job, which resumes the run.
*/}}
{{- define "tandem.trainerName" -}}
{{- $spec := include "tandem.jobSpec" (dict "root" . "jobName" "trainer") | fromYaml -}}
{{- if not .Values.trainer.jobset.enabled -}}
{{- $spec = omit $spec "backoffLimit" "activeDeadlineSeconds" "ttlSecondsAfterFinished" -}}
{{- end -}}
{{- $kind := list .Values.trainer.jobset.enabled .Values.trainer.kueue.queueName -}}
{{- if .Values.trainer.jobset.enabled }}{{ $kind = append $kind (int64 .Values.trainer.backoffLimit) }}{{ end -}}
{{- printf "%s-trainer-%s" (include "tandem.fullname" .) (list $spec $kind | toJson | sha256sum | trunc 8) -}}
{{- end }}

{{/* Name of the Job whose pods train: with a JobSet, the one that it makes. */}}
{{- define "tandem.trainerJobName" -}}
{{- include "tandem.trainerName" . }}{{ if .Values.trainer.jobset.enabled }}-workers-0{{ end -}}
{{- end }}

{{/* Name of the trainer's headless Service. */}}
{{- define "tandem.trainerServiceName" -}}
{{ include "tandem.fullname" . }}-trainer
{{- end }}

{{/* Name of the headless Service by which several workers find each other; a JobSet makes its own. */}}
{{- define "tandem.subdomain" -}}
{{ include "tandem.trainerServiceName" . }}{{ if .Values.trainer.jobset.enabled }}-workers{{ end }}
{{- end }}

{{/* A Job's spec; jobName goes into the pods' flags. */}}
{{- define "tandem.jobSpec" -}}
{{- $trainer := .root.Values.trainer -}}
{{- $pods := int (include "tandem.trainerPods" .root) -}}
{{- /* A JobSet starts its Job again itself, trainer.backoffLimit times; the two would multiply. */ -}}
backoffLimit: {{ $trainer.jobset.enabled | ternary 0 (int64 $trainer.backoffLimit) }}
podReplacementPolicy: Failed # never two trainers at once
podFailurePolicy:
  rules:
    - action: Ignore # evicted, preempted, drained: starts again, and doesn't count
      onPodConditions:
        - type: DisruptionTarget
          status: "True"
    - action: Ignore # saved, resume me
      onExitCodes:
        containerName: trainer
        operator: In
        values: [42]
    - action: FailJob # bad input, training failed, superseded: starting again won't help
      onExitCodes:
        containerName: trainer
        operator: In
        values: [2, 3, 6]
{{- if gt $pods 1 }}
completionMode: Indexed
completions: {{ $pods }}
parallelism: {{ $pods }}
{{- end }}
{{- with $trainer.activeDeadlineSeconds }}
activeDeadlineSeconds: {{ int64 . }}
{{- end }}
{{- if and (ge (int $trainer.ttlSecondsAfterFinished) 0) (not $trainer.jobset.enabled) }}
ttlSecondsAfterFinished: {{ int64 $trainer.ttlSecondsAfterFinished }}
{{- end }}
template:
  {{- include "tandem.trainerTemplate" . | nindent 2 }}
{{- end }}

{{- define "tandem.trainerTemplate" -}}
{{- $root := .root -}}
{{- $trainer := $root.Values.trainer -}}
{{- $pods := int (include "tandem.trainerPods" $root) -}}
{{- $component := dict "root" $root "component" "trainer" "values" $trainer "needsToken" $root.Values.rbac.create -}}
metadata:
  labels:
    {{- include "tandem.podLabels" $component | nindent 4 }}
  annotations:
    {{- include "tandem.podAnnotations" $component | nindent 4 }}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: {{ include "tandem.graceSeconds" $trainer }}
  {{- if not $trainer.jobset.enabled }}
  subdomain: {{ include "tandem.subdomain" $root | quote }}
  {{- end }}
  {{- include "tandem.podSpec" $component | nindent 2 }}
  {{- with $trainer.extraInitContainers }}
  initContainers:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: trainer
      image: {{ include "tandem.image" $component | quote }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      command: [tini, --, tandem-trainer]
      args:
        {{- include "tandem.processFlags" $root | nindent 8 }}
        - {{ printf "--owner=%s" (include "tandem.owner" $root) | quote }}
        - --termination-deadline={{ include "tandem.deadlineSeconds" $trainer }}
        {{- if not $root.Values.runStore.pvc.enabled }}
        - --scratch-dir=/scratch
        {{- end }}
        {{- if $root.Values.rbac.create }}
        {{- include "tandem.clusterFlags" $root | nindent 8 }}
        - --job={{ .jobName }}
        {{- end }}
        {{- with include "tandem.settingFlags" $trainer.settings }}
        {{- . | indent 8 }}
        {{- end }}
      env:
        {{- include "tandem.env" $component | nindent 8 }}
        {{- if gt $pods 1 }}
        {{- include "tandem.tfConfig" . | nindent 8 }}
        {{- end }}
      ports:
        - name: metrics
          containerPort: {{ int64 $root.Values.metrics.port }}
        {{- if gt $pods 1 }}
        - name: workers
          containerPort: 2222
        {{- end }}
      {{- include "tandem.probes" $component | nindent 6 }}
      resources:
        {{- include "tandem.resources" $component | nindent 8 }}
      securityContext:
        {{- include "tandem.containerSecurityContext" $root | nindent 8 }}
      volumeMounts:
        {{- include "tandem.volumeMounts" $component | nindent 8 }}
  volumes:
    {{- include "tandem.volumes" $component | nindent 4 }}
{{- end }}

{{/* TF_CONFIG of several workers, by the names that an indexed Job gives its pods. */}}
{{- define "tandem.tfConfig" -}}
{{- $service := include "tandem.subdomain" .root -}}
{{- $workers := list -}}
{{- $jobName := .jobName -}}
{{- range until (int (include "tandem.trainerPods" .root)) -}}
{{- $workers = append $workers (printf "%s-%d.%s:2222" $jobName . $service) -}}
{{- end -}}
- name: WORKER_INDEX
  valueFrom:
    fieldRef:
      fieldPath: metadata.annotations['batch.kubernetes.io/job-completion-index']
- name: TF_CONFIG
  value: '{"cluster": {"worker": {{ $workers | toJson }}}, "task": {"type": "worker", "index": $(WORKER_INDEX)}}'
{{- end }}
