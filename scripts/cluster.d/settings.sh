# shellcheck shell=bash
# What the node is made of and where it lives. Sourced by the other parts.
# Any of them may be changed by its variable; a change of a version builds into a folder of its own.
KUBERNETES_VERSION=${TANDEM_KUBERNETES_VERSION:-1.37.2}
CONTAINERD_VERSION=${TANDEM_CONTAINERD_VERSION:-2.4.2}
COREDNS_VERSION=${TANDEM_COREDNS_VERSION:-1.14.6}

parts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
home=${TANDEM_CACHE:-$HOME/.cache/tandem}/cluster
digest=$(echo "$KUBERNETES_VERSION $CONTAINERD_VERSION $COREDNS_VERSION" | sha256sum)
programs=$home/$KUBERNETES_VERSION-${digest:0:8} # what was built
state=$home/node                                 # what runs: certificates, logs, process ids, images

network=tandem-cluster # everything listens in this network namespace, and nothing leads out of it
node=tandem-node
node_ip=10.244.0.1
pods=10.244.0.0/24
services=10.96.0.0/16

export KUBECONFIG=$state/kubeconfig PATH=$programs/bin:$PATH

# Not `ip netns exec`: that mounts a /sys of its own, in which kubelet finds no cgroups.
inside() { nsenter --net=/run/netns/$network "$@"; }

# Exit code 3 says that this machine can't run a node, whoever asks and however often.
cannot() {
    echo "cluster: $*" >&2
    exit 3
}

fail() {
    echo "cluster: $*" >&2
    exit 1
}
