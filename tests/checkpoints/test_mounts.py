from pathlib import Path

import pytest

from tandem.checkpoints.mounts import Mount, mount_of, parse_mounts, refuse_unfit_mount
from tandem.checkpoints.opening import open_store
from tandem.errors import ConfigError

TABLE = """\
/dev/sda1 / ext4 rw,relatime 0 0
my-bucket /gcs fuse.gcsfuse rw,nosuid 0 0
my-bucket /gke fuse rw,nosuid 0 0
//server/share /mnt/with\\040blank cifs rw 0 0
server:/export /gcs/nfs nfs4 rw 0 0
"""


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "mounts"
    path.write_text(TABLE)
    return path


@pytest.mark.parametrize(
    ("folder", "mount"),
    [
        ("/data/run", Mount(Path("/"), "ext4")),
        ("/gcs/run", Mount(Path("/gcs"), "fuse.gcsfuse")),
        ("/gcsx/run", Mount(Path("/"), "ext4")),
        ("/gcs/nfs/run", Mount(Path("/gcs/nfs"), "nfs4")),
        ("/mnt/with blank/run", Mount(Path("/mnt/with blank"), "cifs")),
    ],
)
def test_a_folder_is_on_the_longest_mount_above_it(folder, mount):
    assert mount_of(Path(folder), parse_mounts(TABLE)) == mount


def test_of_two_mounts_on_one_folder_the_later_counts():
    mounts = parse_mounts("a /data ext4 rw 0 0\nb /data cifs rw 0 0\n")
    assert mount_of(Path("/data"), mounts) == Mount(Path("/data"), "cifs")


@pytest.mark.parametrize("folder", ["/gcs/run", "/gke/run", "/mnt/with blank/run"])
def test_a_bucket_or_smb_mount_is_refused_with_advice(table, folder):
    with pytest.raises(ConfigError, match="gs://"):
        open_store(folder, mount_table=table)


@pytest.mark.parametrize("folder", ["/data/run", "/gcs/nfs/run"])
def test_a_disk_or_nfs_is_fine(table, folder):
    refuse_unfit_mount(Path(folder), table=table)


def test_without_a_table_of_mounts_everything_is_fine(tmp_path):
    refuse_unfit_mount(Path("/gcs/run"), table=tmp_path / "none")
