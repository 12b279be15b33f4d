{{/* Of what both processes stand on: storage, nodes, clocks, images. */}}
{{- define "tandem.surroundingAlerts" -}}
{{- $root := .root -}}
{{- $parts := .parts -}}
{{- $run := $parts.run -}}
{{- $release := $root.Release.Name -}}
{{- /* Of 99.9 % of requests: 14.4 times what that allows empties a month's budget in two days. A few
failed requests among a few are no rate. */}}
{{- $burns := "max by (namespace, run) (tandem:gcs_error_ratio%s{%s}) > %v * 0.001 and max by (namespace, run) (tandem:gcs_error_ratio%s{%s}) > %v * 0.001 and sum by (namespace, run) (increase(%s[%s])) >= 5" -}}
{{- $probe := printf "%s store probe %s" $parts.tandem (include "tandem.run" $root) -}}
{{- include "tandem.alert" (dict "root" $root "alert" "TandemGcsErrorFastBurn"
  "expr" (printf $burns "5m" $run 14.4 "1h" $run 14.4 $parts.failedRequests "1h")
  "for" "2m" "severity" "page"
  "summary" (printf "{{ $value | humanizePercentage }} of the requests of %s to its bucket fail." $release)
  "action" $probe) }}
{{ include "tandem.alert" (dict "root" $root "alert" "TandemGcsErrorSlowBurn"
  "expr" (printf $burns "30m" $run 6 "6h" $run 6 $parts.failedRequests "6h")
  "for" "15m" "severity" "ticket"
  "summary" (printf "{{ $value | humanizePercentage }} of the requests of %s to its bucket have failed for hours." $release)
  "action" $probe) }}
{{- $preemptions := printf "tandem:preemptions{%s}" $run }}
{{ include "tandem.alert" (dict "root" $root "alert" "TandemPreemptionStorm"
  "expr" (printf "max by (namespace, run) (%s - min_over_time(%s[1h])) > 3" $preemptions $preemptions)
  "severity" "ticket"
  "summary" (printf "The trainer of %s was taken away {{ $value }} times within an hour." $release)
  "action" (printf "%s get events --sort-by=.lastTimestamp" $parts.look)) }}
{{- $unschedulable := printf "max by (namespace, pod) (kube_pod_status_unschedulable{%s, pod=~\"%s|%s\"})" $parts.namespace $parts.trainerPods $parts.evaluatorPods }}
{{ include "tandem.alert" (dict "root" $root "alert" "TandemPodUnschedulable"
  "expr" (printf "%s == 1" (include "tandem.ofRun" (dict "root" $root "expr" $unschedulable)))
  "for" "30m" "severity" "ticket"
  "summary" "No node takes the pod {{ $labels.pod }}."
  "action" (printf "%s describe pod {{ $labels.pod }}" $parts.look)) }}
{{ include "tandem.alert" (dict "root" $root "alert" "TandemGoodputLow"
  "expr" (printf "max by (namespace, run) (tandem:goodput6h{%s}) < 0.7 and %s" $run $parts.active)
  "for" "1h" "severity" "ticket"
  "summary" (printf "Of the time of the trainer of %s, {{ $value | humanizePercentage }} went into steps that count." $release)
  "action" $parts.status) }}
{{- /* A scrape and an evaluation may each be half a minute late, so the least age of a while counts. */}}
{{- $ahead := "max by (namespace, run, pod) (%s{%s}) - time() > 60" -}}
{{- $behind := "min by (namespace, run, pod) (min_over_time((time() - %s{%s})[10m:30s])) > 60 and max by (namespace, run, pod) (changes(%s{%s}[10m])) >= 5" -}}
{{- $step := "tandem_train_last_step_timestamp_seconds" -}}
{{- $beat := "tandem_eval_heartbeat_timestamp_seconds" }}
{{ include "tandem.alert" (dict "root" $root "alert" "TandemClockSkew"
  "expr" (printf "(%s) or (%s) or (%s) or (%s)"
    (printf $ahead $step $run) (printf $ahead $beat $run)
    (printf $behind $step $run $step $run) (printf $behind $beat $run $beat $run))
  "for" "5m" "severity" "ticket"
  "summary" "The clock of the pod {{ $labels.pod }} is wrong by {{ $value | humanizeDuration }}."
  "action" (printf "%s get pod {{ $labels.pod }} -o wide" $parts.look)) }}
{{- /* Trainer and evaluator may be meant to run different images; then their versions count. */}}
{{- $build := printf "tandem_build_info{%s}" $run -}}
{{- $image := printf "label_replace(%s, \"image\", \"$1\", \"image\", \"(.+)-(cpu|gpu|tpu)\")" $build -}}
{{- $by := "version" -}}
{{- $of := $build -}}
{{- if eq (include "tandem.plainImage" (dict "root" $root "component" "trainer")) (include "tandem.plainImage" (dict "root" $root "component" "evaluator")) -}}
{{- $by = "version, image" -}}
{{- $of = $image -}}
{{- end }}
{{ include "tandem.alert" (dict "root" $root "alert" "TandemImagesDiffer"
  "expr" (printf "count by (namespace, run) (count by (namespace, run, %s) (%s)) > 1" $by $of)
  "for" "30m" "severity" "ticket"
  "summary" (printf "Trainer and evaluator of %s run different software." $release)
  "action" (printf "%s get pods -l app.kubernetes.io/instance=%s -o wide" $parts.look $release)) }}
{{- end }}

{{/* A component's image without what tells accelerators apart: root, component. */}}
{{- define "tandem.plainImage" -}}
{{- regexReplaceAll "-(cpu|gpu|tpu)$" (include "tandem.image" .) "" -}}
{{- end }}
