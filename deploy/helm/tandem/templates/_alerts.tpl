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
Rules of this run, for both kinds of objects that hold rules. A process that hangs still answers
scrapes, so alerts look at what its loop writes; how long is too long comes from the run's own
settings, which it exports; a run that is not training is silent, except for what it still owes.
*/}}
{{- define "tandem.alertGroups" -}}
{{- $parts := include "tandem.alertParts" . | fromYaml -}}
{{- $context := dict "root" . "parts" $parts -}}
- name: tandem-{{ .Release.Namespace }}-{{ .Release.Name }}
  interval: 30s
  rules:
    {{- include "tandem.recordings" $context | nindent 4 }}
    {{- include "tandem.trainingAlerts" $context | nindent 4 }}
    {{- if .Values.evaluator.enabled }}
    {{- include "tandem.evaluationAlerts" $context | nindent 4 }}
    {{- end }}
    {{- include "tandem.surroundingAlerts" $context | nindent 4 }}
{{- end }}

{{/*
Names and expressions that several rules use. Who evaluates rules may add labels to what is recorded
(Google's does), so recorded series are reduced to namespace and run like all others.
*/}}
{{- define "tandem.alertParts" -}}
{{- $namespace := printf "namespace=%q" .Release.Namespace -}}
{{- $run := printf "%s, run=%q" $namespace .Release.Name -}}
{{- $name := include "tandem.fullname" . -}}
{{- $job := include "tandem.trainerJobName" . -}}
{{- $evaluator := printf "%s-evaluator" $name -}}
{{- $look := printf "kubectl -n %s" .Release.Namespace -}}
{{- $running := printf "tandem_run_state{%s, state=\"running\"}" $run -}}
{{- $lastStep := printf "max by (namespace, run) (tandem_train_last_step_timestamp_seconds{%s})" $run -}}
{{- $exec := ternary (printf "%s exec deployment/%s -- " $look $evaluator) "" .Values.runStore.pvc.enabled -}}
{{- dict
  "namespace" $namespace
  "run" $run
  "job" $job
  "evaluator" $evaluator
  "look" $look
  "trainerPods" (printf "%s(-[0-9]+)?-[a-z0-9]+" $job)
  "evaluatorPods" (printf "%s-[a-z0-9]+-[a-z0-9]+" $evaluator)
  "running" $running
  "active" (printf "max by (namespace, run) (tandem:run_active{%s})" $run)
  "lastStep" $lastStep
  "trainersClock" (printf "(%s > 0 and max by (namespace, run) (changes(tandem_train_step{%s}[5m])) > 0)" $lastStep $run)
  "age" (printf "max by (namespace, run) (tandem:ckpt_age_seconds{%s})" $run)
  "lag" (printf "max by (namespace, run) (tandem:eval_lag_seconds{%s})" $run)
  "interval" (printf "max by (namespace, run) (tandem_ckpt_interval_target_seconds{%s})" $run)
  "lagBudget" (printf "max by (namespace, run) (tandem_eval_lag_budget_seconds{%s})" $run)
  "failedRequests" (printf "tandem_gcs_requests_total{%s, outcome=~\"error|refused\"}" $run)
  "tandem" (printf "%standem" $exec)
  "logs" (printf "%s logs job/%s --tail=50" $look $job)
  "evaluatorLogs" (printf "%s logs deployment/%s --tail=50" $look $evaluator)
  "status" (printf "tandem status -n %s %s" .Release.Namespace .Release.Name)
| toJson -}}
{{- end }}

{{/* What kube-state-metrics says of one object, as a series of this run: root, expr. */}}
{{- define "tandem.ofRun" -}}
label_replace({{ .expr }}, "run", "{{ .root.Release.Name }}", "", "")
{{- end }}

{{/* One alert: root, alert, expr, severity, summary, action; and for, where it has to last. */}}
{{- define "tandem.alert" -}}
- alert: {{ .alert }}
  expr: {{ regexReplaceAll `\s+` (trim .expr) " " | quote }}
  {{- with .for }}
  for: {{ . }}
  {{- end }}
  labels: {severity: {{ .severity }}}
  annotations:
    summary: {{ .summary | quote }}
    action: {{ .action | quote }}
    runbook_url: {{ printf "%s#%s" .root.Values.monitoring.alerts.runbookUrl (lower .alert) | quote }}
{{- end }}

{{/*
What several alerts and people ask for. The trainer stamps its commits, so their age is measured by its
own clock while that can be seen: a machine whose clock is wrong then ages nothing.
*/}}
{{- define "tandem.recordings" -}}
{{- $parts := .parts -}}
{{- $run := $parts.run -}}
{{- $commit := printf "(max by (namespace, run) (tandem_ckpt_last_commit_timestamp_seconds{%s}) > 0)" $run -}}
{{- $pending := printf "(min by (namespace, run) (tandem_ckpt_oldest_pending_timestamp_seconds{%s} > 0))" $run -}}
{{- $wall := printf "sum by (namespace, run) (increase(tandem_wall_seconds_total{%s}[6h]))" $run -}}
{{- $badput := printf "tandem_badput_seconds_total{%s" $run -}}
{{- $lost := printf "tandem:lost_seconds{%s}" $run -}}
{{- $lostOfLate := printf "max by (namespace, run) (%s - min_over_time(%s[6h]))" $lost $lost -}}
- record: tandem:run_active
  expr: 'max by (namespace, run) ({{ $parts.running }}) == 1'
- record: tandem:ckpt_age_seconds
  expr: '{{ $parts.trainersClock }} - {{ $commit }} or time() - {{ $commit }}'
- record: tandem:eval_lag_seconds
  expr: '{{ $parts.trainersClock }} - {{ $pending }} or time() - {{ $pending }}'
{{- range list "5m" "30m" "1h" "6h" }}
- record: tandem:gcs_error_ratio{{ . }}
  expr: 'sum by (namespace, run) (rate({{ $parts.failedRequests }}[{{ . }}])) / sum by (namespace, run) (rate(tandem_gcs_requests_total{ {{- $run -}} }[{{ . }}]))'
{{- end }}
# Restored from the run by each trainer, so it doesn't grow within one: compare it with its past.
- record: tandem:preemptions
  expr: 'max by (namespace, run) (sum by (namespace, run, pod) (tandem_preemptions_total{ {{- $run -}} , reason=~"asked|killed"}))'
- record: tandem:lost_seconds
  expr: 'max by (namespace, run) ({{ $badput }}, cause="lost"}) >= 0'
- record: tandem:goodput6h
  expr: '1 - (sum by (namespace, run) (increase({{ $badput }}, cause!="lost"}[6h])) + ({{ $lostOfLate }} or 0 * {{ $wall }})) / ({{ $wall }} > 3600)'
{{- end }}
