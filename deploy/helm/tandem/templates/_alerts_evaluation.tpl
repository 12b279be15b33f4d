{{/* Of the evaluator: does it live, get on, keep up, and leave nothing behind? */}}
{{- define "tandem.evaluationAlerts" -}}
{{- $root := .root -}}
{{- $parts := .parts -}}
{{- $run := $parts.run -}}
{{- $release := $root.Release.Name -}}
{{- $alerts := $root.Values.monitoring.alerts -}}
{{- $lag := $parts.lag -}}
{{- include "tandem.alert" (dict "root" $root "alert" "TandemEvalLagHigh"
  "expr" (printf "%s > %s and %s" $lag $parts.lagBudget $parts.active)
  "for" "10m" "severity" "page"
  "summary" (printf "A checkpoint of %s has waited for evaluation for {{ $value | humanizeDuration }}, longer than it may." $release)
  "action" $parts.status) }}
{{- $running := printf "tandem_eval_phase{%s, phase=\"running\"}" $run -}}
{{- $window := printf "%dm" (int64 $alerts.stalledMinutes) }}
{{ include "tandem.alert" (dict "root" $root "alert" "TandemEvalStuck"
  "expr" (printf "max by (namespace, run) (changes(tandem_eval_images_done{%s}[%s]) == 0 and ignoring (phase) %s == 1 and ignoring (phase) %s offset %s == 1)"
    $run $window $running $running $window)
  "for" "5m" "severity" "page"
  "summary" (printf "The evaluator of %s is in the middle of an eval set and gets no further." $release)
  "action" $parts.evaluatorLogs) }}
{{- /* By its clock, or by ours where that is wrong. */}}
{{- $silent := int64 $alerts.evaluatorSilentSeconds -}}
{{- $beat := printf "tandem_eval_heartbeat_timestamp_seconds{%s}" $run }}
{{ include "tandem.alert" (dict "root" $root "alert" "TandemEvaluatorSilent"
  "expr" (printf "%s unless abs(time() - max by (namespace, run) (%s)) < %d unless max by (namespace, run) (changes(%s[%ds])) > 0 unless on (namespace) max by (namespace) (kube_pod_status_unschedulable{%s, pod=~%q}) == 1"
    $parts.active $beat $silent $beat (div (mul $silent 3) 2) $parts.namespace $parts.evaluatorPods)
  "for" "5m" "severity" "page"
  "summary" (printf "%s trains, but its evaluator shows no life." $release)
  "action" (printf "%s describe deployment/%s" $parts.look $parts.evaluator)) }}
{{- $restarts := printf "sum by (namespace, pod) (increase(kube_pod_container_status_restarts_total{%s, container=\"evaluator\", pod=~%q}[30m]))" $parts.namespace $parts.evaluatorPods }}
{{ include "tandem.alert" (dict "root" $root "alert" "TandemEvaluatorCrashLoop"
  "expr" (printf "%s >= 3" (include "tandem.ofRun" (dict "root" $root "expr" $restarts)))
  "severity" "page"
  "summary" (printf "The evaluator of %s was restarted {{ $value | humanize }} times in half an hour." $release)
  "action" (printf "%s logs {{ $labels.pod }} --previous --tail=50" $parts.look)) }}
{{- $tries := printf "sum by (namespace, run) (increase(tandem_eval_attempts_total{%s, outcome=%%q}[1h]))" $run }}
{{ include "tandem.alert" (dict "root" $root "alert" "TandemEvalFailingSameCheckpoint"
  "expr" (printf "%s >= 3 unless %s > 0" (printf $tries "error") (printf $tries "ok"))
  "for" "5m" "severity" "page"
  "summary" (printf "No evaluation of %s has succeeded for an hour, {{ $value | humanize }} have failed." $release)
  "action" $parts.evaluatorLogs) }}
{{- /* Processes that have ended are scraped no more: then what they said last counts. */}}
{{- $job := printf "max by (namespace) (kube_job_%%s{%s, job_name=%q, condition=\"true\"})" $parts.namespace $parts.job -}}
{{- $complete := include "tandem.ofRun" (dict "root" $root "expr" (printf $job "complete")) -}}
{{- $failed := include "tandem.ofRun" (dict "root" $root "expr" (printf $job "failed")) -}}
{{- $ended := printf "(max by (namespace, run) (tandem_run_state{%s, state=~\"finished|failed\"}) == 1 or max by (namespace, run) (tandem_eval_run_outcome{%s, outcome=~\"finished|failed\"}) == 1 or %s == 1 or %s == 1)" $run $run $complete $failed -}}
{{- $committed := printf "max by (namespace, run) (last_over_time(tandem_ckpt_last_commit_step{%s}[1d]) or last_over_time(tandem_eval_newest_checkpoint_step{%s}[1d]))" $run $run -}}
{{- $evaluated := printf "tandem_eval_last_completed_step{%s}" $run -}}
{{- $evaluated = printf "(min by (namespace, run) (%s) or min by (namespace, run) (last_over_time(%s[1d])))" $evaluated $evaluated -}}
{{- /* An evaluator that is done scales itself to zero, often before its last numbers are scraped. */}}
{{- $replicas := printf "max by (namespace) (kube_deployment_spec_replicas{%s, deployment=%q})" $parts.namespace $parts.evaluator -}}
{{- $wanted := printf "(max by (namespace, run) (tandem_eval_backlog{%s}) or max by (namespace, run) (tandem_eval_last_completed_step{%s}) or %s > 0)" $run $run (include "tandem.ofRun" (dict "root" $root "expr" $replicas)) }}
{{ include "tandem.alert" (dict "root" $root "alert" "TandemRunEndedWithoutFinalEval"
  "expr" (printf "%s unless %s >= %s and on (namespace, run) %s and on (namespace, run) %s unless %s unless %s <= %s - 1800"
    $committed $evaluated $committed $ended $wanted $parts.active $lag $parts.lagBudget)
  "for" "30m" "severity" "page"
  "summary" (printf "%s has ended, but its checkpoint of step {{ $value | humanize }} is not evaluated." $release)
  "action" $parts.status) }}
{{- $ap := printf "max by (namespace, run, eval_set) (tandem_eval_%%smetric{%s, metric=\"AP\"})" $run }}
{{ include "tandem.alert" (dict "root" $root "alert" "TandemMetricRegression"
  "expr" (printf "%s - %s > %v and on (namespace, run) %s"
    (printf $ap "best_") (printf $ap "") $alerts.metricDrop $parts.active)
  "for" "2h" "severity" "ticket"
  "summary" (printf "AP of %s on {{ $labels.eval_set }} is {{ $value | humanize }} below its best." $release)
  "action" (printf "%s ledger %s" $parts.tandem (include "tandem.run" $root))) }}
{{- end }}
