"""Faults 6 to 10, 16 and 23: a release that the cluster doesn't run as it should."""

import datetime

from tests.cluster.experiments import RELEASE

_OUT_OF_MEMORY = "160Mi"
_EVICTED = (
    "Preempted to accommodate a workload (UID: 5c023c28-8533-4927-b266-56bca5e310c1, JobUID: "
    "f1c6d8a0-3c8f-4a58-9a33-c5b1a8b7d2e4) due to prioritization in the ClusterQueue"
)


def no_such_pool(scene):
    scene.deploy("--set", "trainer.nodeSelector.pool=gone")

    def is_unschedulable(pod):
        return any(c.get("reason") == "Unschedulable" for c in pod["status"].get("conditions", ()))

    scene.until_pod("trainer", is_unschedulable)
    scene.answer()


def quota_exhausted(scene):
    """Of graphics cards, none of which are left."""
    scene.namespace.apply(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "cards"},
            "spec": {"hard": {"requests.nvidia.com/gpu": "0"}},
        }
    )
    scene.until_quota("cards")
    scene.deploy("--set", r"trainer.resources.limits.nvidia\.com/gpu=1")
    scene.until_event("Job", "FailedCreate")
    scene.answer()


def image_missing(scene):
    """No registry is reachable from the node, so that this is what a wrong tag comes to as well."""
    scene.deploy(
        "--set",
        "trainer.image.tag=gone",
        "--set",
        "image.pullPolicy=IfNotPresent",
        has_evaluator=True,
    )

    def fails_to_pull(pod):
        waiting = _own(pod, "trainer").get("state", {}).get("waiting", {})
        return waiting.get("reason") in ("ErrImagePull", "ImagePullBackOff")

    scene.until_pod("trainer", fails_to_pull)
    scene.answer()


def trainer_out_of_memory(scene):
    scene.deploy(*_memory("trainer"))
    scene.until_pod("trainer", lambda pod: _killed_for_memory(pod, "trainer"))
    scene.answer()


def evaluator_out_of_memory(scene):
    # Who asks sits at this machine too, which is not to be taken up by a trainer that is well.
    little = ("--set", "trainer.resources.limits.cpu=500m")
    scene.deploy(*_memory("evaluator"), *little, has_evaluator=True)
    scene.until_pod("evaluator", _waits_after_being_killed_twice)
    scene.answer()


def _waits_after_being_killed_twice(pod):
    """For its next start: before its end it keeps this machine, which is node and desk in one, busy
    with reading back the pages that don't fit into its memory."""
    status = _own(pod, "evaluator")
    reason = status.get("state", {}).get("waiting", {}).get("reason")
    is_waiting = reason == "CrashLoopBackOff"
    return is_waiting and _killed_for_memory(pod, "evaluator") and status["restartCount"] >= 2


def _memory(component):
    for kind in ("requests", "limits"):
        yield from ("--set", f"{component}.resources.{kind}.memory={_OUT_OF_MEMORY}")


def _own(pod, component):
    found = [s for s in pod["status"].get("containerStatuses", ()) if s["name"] == component]
    return found[0] if found else {}


def _killed_for_memory(pod, component):
    status = _own(pod, component)
    states = (status.get("state", {}), status.get("lastState", {}))
    return any(state.get("terminated", {}).get("reason") == "OOMKilled" for state in states)


def label_map_disagrees(scene):
    """Someone has renamed two classes in it, whose records bear the old names."""
    labels = scene.files["labels"].read_text()
    renamed = labels.replace("circle", "disc").replace("square", "tile")
    scene.put_data("other-data", labels=renamed)
    scene.deploy("--set", "trainer.extraVolumes[0].configMap.name=other-data")
    scene.until_job(
        lambda job: any(
            c["type"] == "Failed" and c["status"] == "True"
            for c in job["status"].get("conditions", ())
        )
    )
    scene.answer()


def evicted_by_kueue(scene):
    """There is no Kueue here: we suspend the Job as it does, and write its Events."""
    scene.deploy("--set", "trainer.kueue.queueName=team-a", has_evaluator=True)
    job = scene.job()["metadata"]["name"]
    if scene.job()["spec"].get("suspend"):
        scene.suspend(job, is_suspended=False)
    scene.until(scene.has_scored, "a score", seconds=300)
    scene.well()
    scene.suspend(job, is_suspended=True)
    workload = f"job-{job}-3f0a1"
    events = (
        _event("Job", "batch/v1", job, "Stopped", by="batch/job-kueue-controller"),
        _event(
            *("Workload", "kueue.x-k8s.io/v1beta1", workload, "EvictedDueToPreempted"),
            by="kueue-admission",
        ),
    )
    for event in events:
        event["involvedObject"]["namespace"] = scene.namespace.name
    scene.namespace.apply(*events)
    scene.until_job(
        lambda found: any(
            c["type"] == "Suspended" and c["status"] == "True"
            for c in found["status"].get("conditions", ())
        )
    )
    scene.answer()


def _event(kind, version, name, reason, *, by):
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{RELEASE}-{reason.lower()}"},
        "involvedObject": {"apiVersion": version, "kind": kind, "name": name},
        "reason": reason,
        "message": _EVICTED,
        "type": "Normal",
        "source": {"component": by},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
