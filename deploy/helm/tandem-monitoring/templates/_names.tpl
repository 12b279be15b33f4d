{{/* The metadata of an object: root, name, and optionally labels. */}}
{{- define "tandem-monitoring.metadata" -}}
{{- $standard := dict
  "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_")
  "app.kubernetes.io/name" .root.Chart.Name
  "app.kubernetes.io/instance" .root.Release.Name
  "app.kubernetes.io/version" .root.Chart.AppVersion
  "app.kubernetes.io/part-of" "tandem"
  "app.kubernetes.io/managed-by" .root.Release.Service
-}}
name: {{ .name | quote }}
labels:
  {{- merge $standard (.labels | default dict) .root.Values.commonLabels | toYaml | nindent 2 }}
{{- end }}

{{/* What the rules of both kinds hold. */}}
{{- define "tandem-monitoring.groups" -}}
- name: tandem-runs
  interval: 30s
  rules:
    - record: tandem:run_active
      expr: 'max by (namespace, run) (tandem_run_state{state="running"}) == 1'
    - record: tandem:eval_behind_steps
      expr: 'max by (namespace, run) (tandem_eval_newest_checkpoint_step) - min by (namespace, run) (tandem_eval_last_completed_step)'
    - record: tandem:stall_ratio1h
      expr: 'sum by (namespace, run) (rate(tandem_ckpt_stall_seconds_sum[1h]))'
    - alert: TandemTwoTrainers
      expr: 'count by (namespace, run) (tandem_run_state{state="running"} == 1) > 1'
      for: 5m
      labels: {severity: page}
      annotations:
        summary: '{{ `{{ $value }}` }} trainers of {{ `{{ $labels.namespace }}/{{ $labels.run }}` }} train at once.'
        action: 'kubectl -n {{ `{{ $labels.namespace }}` }} get pods -l app.kubernetes.io/instance={{ `{{ $labels.run }}` }}'
    - alert: TandemNotScraped
      expr: 'max by (namespace, run, container) (up{container=~"trainer|evaluator", run!=""}) == 0'
      for: 10m
      labels: {severity: ticket}
      annotations:
        summary: 'The {{ `{{ $labels.container }}` }} of {{ `{{ $labels.namespace }}/{{ $labels.run }}` }} runs, but can''t be scraped.'
        action: 'Does a NetworkPolicy keep Prometheus out? networkPolicy.metricsFrom of that release says who may read metrics.'
{{- end }}
