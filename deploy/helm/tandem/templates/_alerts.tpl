{{/* Pods with metrics of their own: not TensorBoard's. */}}
{{- define "tandem.scrapedPods" -}}
matchLabels:
  app.kubernetes.io/name: tandem
  app.kubernetes.io/instance: {{ .Release.Name | quote }}
matchExpressions:
  - key: app.kubernetes.io/component
    operator: In
    values: [trainer, evaluator]
{{- end }}

{{/*
Alerts of this run. A process that hangs still answers scrapes, so they look at what its loop writes;
a run that is not training is silent, except for what it still owes.
*/}}
{{- define "tandem.alertGroups" -}}
{{- $run := printf "namespace=%q, run=%q" .Release.Namespace .Release.Name -}}
{{- $training := printf "max by (namespace, run) (tandem_run_state{%s, state=\"running\"}) == 1" $run -}}
{{- $alerts := .Values.monitoring.alerts -}}
{{- $running := printf "tandem_run_state{%s, state=\"running\"} == 1" $run -}}
{{- $stalled := int64 $alerts.stalledMinutes -}}
{{- /* A process that has trained for so long, seen every 30 s: a first step may take minutes to compile. */}}
{{- $trainedLong := printf "max by (namespace, run) (count_over_time((%s)[%dm:30s]) and %s) >= %d" $running $stalled $running (div (mul $stalled 18) 10) -}}
{{- $age := int64 $alerts.checkpointAgeSeconds -}}
{{- $commit := printf "tandem_ckpt_last_commit_timestamp_seconds{%s}" $run -}}
{{- $every := max 30 (div $age 120) -}}
{{- $window := printf "[%ds:%ds]" $age $every -}}
{{- /* Before an attempt's first commit its metric says nothing: then the time that the run has trained counts. */}}
{{- $trainedForAge := printf "count_over_time((%s)%s) >= %d" $training $window (div (mul $age 9) (mul $every 10)) -}}
{{- $committed := printf "max by (namespace, run) (max_over_time(%s%s)) > time() - %d" $commit $window $age -}}
{{- $neverCommitted := printf "(%d * (%s) and %s) unless %s" $age $training $trainedForAge $committed -}}
{{- $job := include "tandem.trainerJobName" . -}}
{{- $evaluatorPods := printf "%s-evaluator-[a-z0-9]+-[a-z0-9]+" (include "tandem.fullname" .) -}}
{{- $namespace := printf "namespace=%q" .Release.Namespace -}}
{{- $look := printf "kubectl -n %s" .Release.Namespace -}}
- name: tandem-{{ .Release.Namespace }}-{{ .Release.Name }}
  interval: 30s
  rules:
    - alert: TandemTrainStalled
      expr: 'max by (namespace, run) (changes(tandem_train_step{ {{- $run -}} }[{{ $stalled }}m])) == 0 and {{ $trainedLong }}'
      for: 5m
      labels: {severity: page}
      annotations:
        summary: 'The trainer of {{ .Release.Name }} says that it trains, but takes no steps.'
        action: '{{ $look }} logs job/{{ $job }} --tail=50'
    - alert: TandemCheckpointStale
      expr: '((time() - max by (namespace, run) ({{ $commit }}) > {{ $age }}) and {{ $training }}) or ({{ $neverCommitted }})'
      for: 5m
      labels: {severity: page}
      annotations:
        summary: '{{ .Release.Name }} has committed no checkpoint for {{ `{{ $value | humanizeDuration }}` }}.'
        action: '{{ $look }} logs job/{{ $job }} --tail=50'
    - alert: TandemSaveFailed
      expr: 'sum by (namespace, run) (increase(tandem_ckpt_saves_total{ {{- $run -}} , outcome="error"}[15m])) > 0'
      labels: {severity: page}
      annotations:
        summary: 'The trainer of {{ .Release.Name }} could not save a checkpoint.'
        action: '{{ $look }} logs job/{{ $job }} --tail=50'
    - alert: TandemTrainerFailed
      expr: 'max by (namespace, job_name) (kube_job_failed{ {{- $namespace }}, job_name={{ $job | quote }}, condition="true"}) == 1'
      labels: {severity: page}
      annotations:
        summary: 'The trainer Job of {{ .Release.Name }} has failed and is not started again.'
        action: '{{ $look }} describe job/{{ $job }}'
    {{- if .Values.evaluator.enabled }}
    - alert: TandemEvaluatorSilent
      expr: '({{ $training }}) unless on (namespace, run) (time() - max by (namespace, run) (tandem_eval_heartbeat_timestamp_seconds{ {{- $run -}} }) < {{ int64 $alerts.evaluatorSilentSeconds }})'
      for: 5m
      labels: {severity: page}
      annotations:
        summary: '{{ .Release.Name }} trains, but its evaluator shows no life.'
        action: '{{ $look }} describe deployment/{{ include "tandem.fullname" . }}-evaluator'
    - alert: TandemEvaluationStuck
      expr: 'max by (namespace, run) (changes(tandem_eval_images_done{ {{- $run -}} }[{{ $stalled }}m])) == 0 and max by (namespace, run) (tandem_eval_phase{ {{- $run -}} , phase="running"}) == 1'
      for: 5m
      labels: {severity: page}
      annotations:
        summary: 'The evaluator of {{ .Release.Name }} is in the middle of an eval set and gets no further.'
        action: '{{ $look }} logs deployment/{{ include "tandem.fullname" . }}-evaluator --tail=50'
    - alert: TandemEvaluationFailing
      expr: '(sum by (namespace, run) (increase(tandem_eval_attempts_total{ {{- $run -}} , outcome="error"}[1h])) >= 3) unless on (namespace, run) (sum by (namespace, run) (increase(tandem_eval_attempts_total{ {{- $run -}} , outcome="ok"}[1h])) > 0)'
      for: 5m
      labels: {severity: page}
      annotations:
        summary: 'No evaluation of {{ .Release.Name }} has succeeded for an hour, {{ `{{ $value | humanize }}` }} have failed.'
        action: '{{ $look }} logs deployment/{{ include "tandem.fullname" . }}-evaluator --tail=50'
    - alert: TandemEvaluationBehind
      expr: 'max by (namespace, run) (tandem_eval_backlog{ {{- $run -}} }) > {{ int64 $alerts.evaluationBacklog }}'
      for: 15m
      labels: {severity: ticket}
      annotations:
        summary: '{{ `{{ $value }}` }} checkpoints of {{ .Release.Name }} wait for evaluation.'
        action: Give the evaluator more (evaluator.resources, an accelerator), or save less often (trainer.settings.checkpointEveryN).
    - alert: TandemMetricDropped
      expr: 'max by (namespace, run, eval_set) (tandem_eval_best_metric{ {{- $run -}} , metric="AP"}) - max by (namespace, run, eval_set) (tandem_eval_metric{ {{- $run -}} , metric="AP"}) > {{ $alerts.metricDrop }}'
      for: 2h
      labels: {severity: ticket}
      annotations:
        summary: 'AP of {{ .Release.Name }} on {{ `{{ $labels.eval_set }}` }} is {{ `{{ $value | humanize }}` }} below its best.'
        action: Compare the newest checkpoints in TensorBoard; the best one is kept.
    - alert: TandemEvaluatorCrashLoop
      expr: 'sum by (namespace, pod) (increase(kube_pod_container_status_restarts_total{ {{- $namespace }}, container="evaluator", pod=~"{{ $evaluatorPods }}"}[30m])) >= 3'
      labels: {severity: page}
      annotations:
        summary: 'The evaluator of {{ .Release.Name }} was restarted {{ `{{ $value | humanize }}` }} times in half an hour.'
        action: '{{ $look }} logs deployment/{{ include "tandem.fullname" . }}-evaluator --previous --tail=50'
    {{- end }}
    - alert: TandemPodUnschedulable
      expr: 'max by (namespace, pod) (kube_pod_status_unschedulable{ {{- $namespace }}, pod=~"{{ $job }}(-[0-9]+)?-[a-z0-9]+|{{ $evaluatorPods }}"}) == 1'
      for: 30m
      labels: {severity: ticket}
      annotations:
        summary: 'No node takes the pod {{ `{{ $labels.pod }}` }}.'
        action: '{{ $look }} describe pod {{ `{{ $labels.pod }}` }}'
{{- end }}
