{{/* Rules between values, which the schema can't express. One message each: value, found, expected. */}}
{{- define "tandem.check" -}}
{{- include "tandem.checkName" . -}}
{{- include "tandem.checkExperiment" . -}}
{{- include "tandem.checkRunStore" . -}}
{{- include "tandem.checkImages" . -}}
{{- include "tandem.checkTrainer" . -}}
{{- include "tandem.checkEvaluator" . -}}
{{- include "tandem.checkDatasets" . -}}
{{- include "tandem.checkMonitoring" . -}}
{{- include "tandem.checkEnv" . -}}
{{- end }}

{{- define "tandem.refuse" -}}
{{- fail (printf "\n\n%s\n" .) -}}
{{- end }}

{{/* Services and a subdomain are named after the release, and want a letter first and no dots. */}}
{{- define "tandem.checkName" -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" (.Values.nameOverride | default .Release.Name)) -}}
{{- include "tandem.refuse" (printf "the release's name is %s, which Services can't be named after; expected lower-case letters, digits and -, a letter first, or such a name in nameOverride" .Release.Name) -}}
{{- end -}}
{{- end }}

{{- define "tandem.checkExperiment" -}}
{{- $experiment := .Values.experiment -}}
{{- if not (trim $experiment.pipelineConfig) -}}
{{- include "tandem.refuse" "experiment.pipelineConfig is empty; expected the text of a pipeline.config: --set-file experiment.pipelineConfig=pipeline.config" -}}
{{- end -}}
{{- if and $experiment.labelMap (not (regexMatch (include "tandem.labelMapField" .) $experiment.pipelineConfig)) -}}
{{- include "tandem.refuse" "experiment.labelMap is given, but experiment.pipelineConfig has no label_map_path that could name it; add label_map_path to its input readers, or leave labelMap out" -}}
{{- end -}}
{{- if $experiment.labelMap -}}
{{- range $index, $override := $experiment.overrides -}}
{{- if regexMatch "\\blabel_map_path\\b" $override -}}
{{- include "tandem.refuse" (printf "experiment.overrides[%d] sets label_map_path, but experiment.labelMap is given, which every label_map_path names; expected one of the two" $index) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "tandem.checkRunStore" -}}
{{- $store := .Values.runStore -}}
{{- if $store.pvc.enabled -}}
  {{- if $store.url -}}
  {{- include "tandem.refuse" (printf "runStore.url is %s, and runStore.pvc.enabled is true; expected one of the two" $store.url) -}}
  {{- end -}}
  {{- if regexMatch "(^|/)[.]{1,2}(/|$)" $store.pvc.folder -}}
  {{- include "tandem.refuse" (printf "runStore.pvc.folder is %s; expected a folder inside of the volume, as experiments/raccoon, without . and .." $store.pvc.folder) -}}
  {{- end -}}
{{- else if not $store.url -}}
{{- include "tandem.refuse" "runStore.url is empty; expected the run's folder, as gs://BUCKET/FOLDER, or runStore.pvc.enabled: true for a volume" -}}
{{- else if not (regexMatch "^gs://[a-z0-9][-a-z0-9._]+/\\S+$" $store.url) -}}
{{- include "tandem.refuse" (printf "runStore.url is %s; expected gs://BUCKET/FOLDER with a bucket's name (lower case) and a folder of the run's own; a folder of a volume is runStore.pvc" $store.url) -}}
{{- end -}}
{{- end }}

{{- define "tandem.checkImages" -}}
{{- $repository := .Values.image.repository -}}
{{- if and $repository (not (regexMatch "^[^\\s:@]+(:[0-9]+/[^\\s:@]+)?$" $repository)) -}}
{{- include "tandem.refuse" (printf "image.repository is %s; expected a name without tag or digest, which are image.tag and image.digest" $repository) -}}
{{- end -}}
{{- if not $repository -}}
{{- include "tandem.refuse" "image.repository is empty; expected where your cluster pulls the image from, without a tag, as europe-docker.pkg.dev/PROJECT/REPOSITORY/tandem" -}}
{{- end -}}
{{- $boards := .Values.tensorboard -}}
{{- if and .Values.image.digest $boards.enabled (not (or .Values.image.tag $boards.image.tag $boards.image.digest)) -}}
{{- include "tandem.refuse" "image.digest pins trainer and evaluator, but TensorBoard has an image of its own, which nothing pins; expected tensorboard.image.digest, or a tag in tensorboard.image.tag, or tensorboard.enabled: false" -}}
{{- end -}}
{{- end }}

{{- define "tandem.checkTrainer" -}}
{{- $trainer := .Values.trainer -}}
{{- $pods := int (include "tandem.trainerPods" .) -}}
{{- include "tandem.checkSlices" (dict "component" "trainer" "values" $trainer) -}}
{{- if and (eq $trainer.accelerator.type "tpu") (gt (int $trainer.workers) 1) (ne (int $trainer.workers) $pods) -}}
{{- include "tandem.refuse" (printf "trainer.workers is %d, but topology %s with chipsPerHost %d makes %d host(s); expected that number, or workers left at 1, since a TPU slice has one pod per host" (int $trainer.workers) $trainer.accelerator.tpu.topology (int $trainer.accelerator.tpu.chipsPerHost) $pods) -}}
{{- end -}}
{{- if and (gt $pods 1) .Values.runStore.pvc.enabled (not .Values.runStore.pvc.existingClaim) (not (has "ReadWriteMany" .Values.runStore.pvc.accessModes)) -}}
{{- include "tandem.refuse" (printf "runStore.pvc.accessModes is %s, but %d trainer pods share the volume; expected [ReadWriteMany]" (join ", " .Values.runStore.pvc.accessModes) $pods) -}}
{{- end -}}
{{- $grace := int (include "tandem.graceSeconds" $trainer) -}}
{{- if lt $grace 8 -}}
{{- include "tandem.refuse" (printf "trainer.terminationGracePeriodSeconds is %d; expected at least 8, of which the last checkpoint gets 3, or 0 for the default" $grace) -}}
{{- end -}}
{{- $deadline := int (include "tandem.deadlineSeconds" $trainer) -}}
{{- if ge (add $deadline 2) $grace -}}
{{- include "tandem.refuse" (printf "trainer.terminationDeadlineSeconds is %d, but the pod is killed %d s after SIGTERM (trainer.terminationGracePeriodSeconds); expected at most %d, so that the trainer can leave by itself" $deadline $grace (sub $grace 3)) -}}
{{- end -}}
{{- end }}

{{- define "tandem.checkSlices" -}}
{{- if and (eq .values.accelerator.type "tpu") (ne (int .values.accelerator.tpu.slices) 1) -}}
{{- include "tandem.refuse" (printf "%s.accelerator.tpu.slices is %d; expected 1: training over several slices is not supported" .component (int .values.accelerator.tpu.slices)) -}}
{{- end -}}
{{- end }}

{{- define "tandem.checkEvaluator" -}}
{{- $evaluator := .Values.evaluator -}}
{{- if $evaluator.enabled -}}
{{- include "tandem.checkSlices" (dict "component" "evaluator" "values" $evaluator) -}}
{{- if eq $evaluator.accelerator.type "tpu" -}}
  {{- $hosts := int (include "tandem.tpuHosts" (dict "component" "evaluator" "tpu" $evaluator.accelerator.tpu)) -}}
  {{- if ne $hosts 1 -}}
  {{- include "tandem.refuse" (printf "evaluator.accelerator.tpu: topology %s with chipsPerHost %d makes %d hosts; expected one host, since the evaluator is one pod" $evaluator.accelerator.tpu.topology (int $evaluator.accelerator.tpu.chipsPerHost) $hosts) -}}
  {{- end -}}
{{- end -}}
{{- if and (eq $evaluator.onEnd "scale-to-zero") (not .Values.rbac.create) -}}
{{- include "tandem.refuse" "evaluator.onEnd is scale-to-zero, but rbac.create is false, so the evaluator may not scale its Deployment; expected rbac.create: true, or onEnd: stay" -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "tandem.checkDatasets" -}}
{{- $names := list -}}
{{- range .Values.datasets -}}
  {{- $sources := 0 -}}
  {{- with .gcsFuse }}{{ $sources = add $sources 1 }}{{ end -}}
  {{- with .pvc }}{{ $sources = add $sources 1 }}{{ end -}}
  {{- if ne (int $sources) 1 -}}
  {{- include "tandem.refuse" (printf "datasets: %s has %d of gcsFuse and pvc; expected exactly one of them" .name (int $sources)) -}}
  {{- end -}}
  {{- if has .name $names -}}
  {{- include "tandem.refuse" (printf "datasets: the name %s is there twice; expected a name of its own for each" .name) -}}
  {{- end -}}
  {{- $names = append $names .name -}}
{{- end -}}
{{- end }}

{{- define "tandem.checkMonitoring" -}}
{{- with .Values.monitoring -}}
{{- if and .podMonitor.enabled .podMonitoring.enabled -}}
{{- include "tandem.refuse" "monitoring.podMonitor.enabled and monitoring.podMonitoring.enabled are both true, so every pod would be scraped twice; expected podMonitor for the Prometheus Operator or podMonitoring for Google Managed Prometheus" -}}
{{- end -}}
{{- if and .prometheusRule.enabled .gmpRules.enabled -}}
{{- include "tandem.refuse" "monitoring.prometheusRule.enabled and monitoring.gmpRules.enabled are both true, so every alert would fire twice; expected prometheusRule for the Prometheus Operator or gmpRules for Google Managed Prometheus" -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "tandem.checkEnv" -}}
{{- include "tandem.checkVariables" (dict "where" "extraEnv" "variables" .Values.extraEnv) -}}
{{- range $component := list "trainer" "evaluator" "tensorboard" -}}
{{- $values := index $.Values $component -}}
{{- include "tandem.checkVariables" (dict "where" (printf "%s.extraEnv" $component) "variables" $values.extraEnv) -}}
{{- end -}}
{{- end }}

{{- define "tandem.checkVariables" -}}
{{- $where := .where -}}
{{- $names := list -}}
{{- range .variables -}}
  {{- if has .name (list "HOME" "TMPDIR" "POD_NAME" "TANDEM_IMAGE" "WORKER_INDEX" "TF_CONFIG") -}}
  {{- include "tandem.refuse" (printf "%s sets %s, which the chart sets itself; expected another name" $where .name) -}}
  {{- end -}}
  {{- if has .name $names -}}
  {{- include "tandem.refuse" (printf "%s: the name %s is there twice; expected each name once" $where .name) -}}
  {{- end -}}
  {{- $names = append $names .name -}}
{{- end -}}
{{- end }}
