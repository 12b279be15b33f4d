{{/* Of the trainer: does it get on, does it save, does it end well? */}}
{{- define "tandem.trainingAlerts" -}}
{{- $root := .root -}}
{{- $parts := .parts -}}
{{- $run := $parts.run -}}
{{- $release := $root.Release.Name -}}
{{- $stalled := int64 $root.Values.monitoring.alerts.stalledMinutes -}}
{{- $budget := printf "max by (namespace, run) (tandem_train_stall_budget_seconds{%s})" $run -}}
{{- $still := printf "max by (namespace, run) (changes(tandem_train_step{%s}[%%s])) == 0" $run -}}
{{- /* Before the first steps there is no budget, and a first step may take minutes to compile. */}}
{{- $trainedLong := printf "max by (namespace, run) (count_over_time((%s == 1)[%dm:30s])) >= %d" $parts.running $stalled (div (mul $stalled 18) 10) -}}
{{- include "tandem.alert" (dict "root" $root "alert" "TandemTrainStalled"
  "expr" (printf "((time() - %s > %s and %s) or (%s and %s unless %s > %d)) and %s"
    $parts.lastStep $budget (printf $still "5m")
    (printf $still (printf "%dm" $stalled)) $trainedLong $budget (mul $stalled 60)
    $parts.active)
  "for" "10m" "severity" "page"
  "summary" (printf "The trainer of %s says that it trains, but takes no steps." $release)
  "action" $parts.logs) }}
{{- $wall := printf "max by (namespace, run) (tandem_wall_seconds_total{%s})" $run -}}
{{- $starting := printf "max by (namespace, run) (tandem_badput_seconds_total{%s, cause=\"starting\"})" $run -}}
{{- $trained := printf "%s - %s" $wall $starting -}}
{{- $age := $parts.age }}
{{ include "tandem.alert" (dict "root" $root "alert" "TandemCheckpointStale"
  "expr" (printf "((%s > 3 * %s unless %s < 1.5 * %s) or (%s > 3 * %s unless %s)) and %s"
    $age $parts.interval $trained $parts.interval
    $trained $parts.interval $age
    $parts.active)
  "for" "5m" "severity" "page"
  "summary" (printf "%s has committed no checkpoint for three of its intervals." $release)
  "action" $parts.logs) }}
{{- /* A process that meets damage at its start is first scraped with a 1, which is no increase. */}}
{{- $damaged := printf "tandem_ckpt_verify_failures_total{%s}" $run }}
{{ include "tandem.alert" (dict "root" $root "alert" "TandemCheckpointCorrupt"
  "expr" (printf "sum by (namespace, run) (increase(%s[15m])) > 0 or sum by (namespace, run) (%s unless %s offset 15m) > 0 or max by (namespace, run) (tandem_eval_unreadable_entries{%s}) > 0"
    $damaged $damaged $damaged $run)
  "severity" "page"
  "summary" (printf "A checkpoint of %s is damaged, or an entry of its ledger." $release)
  "action" (printf "%s store verify %s" $parts.tandem (include "tandem.run" $root))) }}
{{ include "tandem.alert" (dict "root" $root "alert" "TandemSaveFailed"
  "expr" (printf "max by (namespace, run) (increase(tandem_ckpt_saves_total{%s, outcome=\"error\"}[1h]) > 0 and on (namespace, run, pod) %s == 1) unless %s < 1.5 * %s"
    $run $parts.running $age $parts.interval)
  "severity" "page"
  "summary" (printf "The trainer of %s could not save a checkpoint, and none has been committed since." $release)
  "action" $parts.logs) }}
{{- $ofJob := printf "{%s, job_name=%q" $parts.namespace $parts.job -}}
{{- $whole := printf "%s, condition=\"true\"}" $ofJob -}}
{{- $failed := include "tandem.ofRun" (dict "root" $root "expr" (printf "max by (namespace) (kube_job_failed%s)" $whole)) }}
{{ include "tandem.alert" (dict "root" $root "alert" "TandemTrainerFailed"
  "expr" (printf "%s == 1 or (max by (namespace, run) (tandem_eval_run_outcome{%s, outcome=\"failed\"}) == 1 unless on (namespace) kube_job_status_active%s} > 0)"
    $failed $run $ofJob)
  "for" "5m" "severity" "page"
  "summary" (printf "The trainer of %s has failed and is not started again." $release)
  "action" (printf "%s describe job/%s" $parts.look $parts.job)) }}
{{- $there := include "tandem.ofRun" (dict "root" $root "expr" (printf "max by (namespace) (kube_job_info%s})" $ofJob)) -}}
{{- $suspended := printf " unless on (namespace) kube_job_status_suspended%s} == 1" $ofJob }}
{{ include "tandem.alert" (dict "root" $root "alert" "TandemTrainerNotStarted"
  "expr" (printf "%s == 1 unless on (namespace) kube_job_complete%s == 1 unless on (namespace) kube_job_failed%s == 1 unless on (namespace) max by (namespace) (kube_pod_status_phase{%s, pod=~%q, phase=\"Running\"}) == 1%s"
    $there $whole $whole $parts.namespace $parts.trainerPods
    (ternary "" $suspended (not (empty $root.Values.trainer.kueue.queueName))))
  "for" "30m" "severity" "ticket"
  "summary" (printf "The trainer of %s has waited for half an hour to be started." $release)
  "action" (printf "%s describe job/%s" $parts.look $parts.job)) }}
{{- end }}
