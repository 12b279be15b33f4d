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

{{/*
What the rules of both kinds hold: what no run could say of itself alone. Alerts on each run come with
its own release of the `tandem` chart.
*/}}
{{- define "tandem-monitoring.groups" -}}
{{- $runbook := printf "%s#" .Values.rules.runbookUrl -}}
- name: tandem-runs
  interval: 30s
  rules:
    - alert: TandemTwoTrainers
      expr: 'count by (namespace, run) (tandem_run_state{state="running"} == 1) > 1'
      for: 5m
      labels: {severity: page}
      annotations:
        summary: '{{ `{{ $value }}` }} trainers of {{ `{{ $labels.namespace }}/{{ $labels.run }}` }} train at once.'
        action: 'kubectl -n {{ `{{ $labels.namespace }}` }} get pods -l app.kubernetes.io/instance={{ `{{ $labels.run }}` }}'
        runbook_url: {{ printf "%s%s" $runbook "tandemtwotrainers" | quote }}
    - alert: TandemNotScraped
      expr: 'max by (namespace, run, container) (up{container=~"trainer|evaluator", run!=""}) == 0'
      for: 10m
      labels: {severity: ticket}
      annotations:
        summary: 'The {{ `{{ $labels.container }}` }} of {{ `{{ $labels.namespace }}/{{ $labels.run }}` }} runs, but can''t be scraped.'
        action: 'kubectl -n {{ `{{ $labels.namespace }}` }} get pods,networkpolicies -l app.kubernetes.io/instance={{ `{{ $labels.run }}` }}'
        runbook_url: {{ printf "%s%s" $runbook "tandemnotscraped" | quote }}
{{- end }}
