import pytest

from tandem.kube.jobs import Condition, JobPhase, JobState, job_state

FAILED = Condition("Failed", is_true=True, reason="PodFailurePolicy", message="exit code 3")
TARGET = Condition("FailureTarget", is_true=True, reason="BackoffLimitExceeded", message="4 pods")
COMPLETE = Condition("Complete", is_true=True)
MET = Condition("SuccessCriteriaMet", is_true=True)
QUEUED = Condition("Suspended", is_true=True, reason="JobSuspended", message="Job suspended")
RESUMED = Condition("Suspended", is_true=False, reason="JobResumed")


@pytest.mark.parametrize(
    ("conditions", "num_ready", "is_suspended", "expected"),
    [
        ([], 1, False, JobState(JobPhase.RUNNING)),
        ([], 0, False, JobState(JobPhase.WAITING)),
        ([RESUMED], 1, False, JobState(JobPhase.RUNNING)),
        ([QUEUED], 0, True, JobState(JobPhase.WAITING, "JobSuspended", "Job suspended")),
        ([], 0, True, JobState(JobPhase.WAITING, "Suspended", "")),
        ([MET], 0, False, JobState(JobPhase.COMPLETE)),
        ([MET, COMPLETE], 0, False, JobState(JobPhase.COMPLETE)),
        ([TARGET], 1, False, JobState(JobPhase.FAILED, "BackoffLimitExceeded", "4 pods")),
        ([TARGET, FAILED], 0, False, JobState(JobPhase.FAILED, "PodFailurePolicy", "exit code 3")),
    ],
)
def test_a_jobs_status_says_how_far_the_trainer_is(conditions, num_ready, is_suspended, expected):
    state = job_state(conditions, num_ready=num_ready, num_failed=0, is_suspended=is_suspended)
    assert state == expected


@pytest.mark.parametrize("phase", list(JobPhase))
def test_only_a_complete_or_failed_job_starts_no_pod_any_more(phase):
    assert phase.is_over == (phase in (JobPhase.COMPLETE, JobPhase.FAILED))


def test_pods_that_count_as_failures_are_told():
    assert job_state([], num_ready=1, num_failed=2, is_suspended=False).num_failed == 2
