# shellcheck shell=bash
# What the machine must have. Whatever Debian packages it is installed; the rest is said.

# COMMAND=PACKAGE or FILE=PACKAGE. buildah, podman and debootstrap make the images that the node runs.
needed="runc=runc iptables=iptables conntrack=conntrack ip=iproute2 nsenter=util-linux openssl=openssl
    /usr/lib/cni/bridge=containernetworking-plugins buildah=buildah podman=podman
    debootstrap=debootstrap gcc=gcc /usr/include/stdlib.h=libc6-dev"

install_packages() {
    local pair missing=""
    for pair in $needed; do
        [ -e "${pair%=*}" ] || command -v "${pair%=*}" > /dev/null || missing="$missing ${pair#*=}"
    done
    [ -n "$missing" ] || return 0
    command -v apt-get > /dev/null || cannot "needs these, which it can only install on Debian:$missing"
    echo "cluster: installing$missing" >&2
    # shellcheck disable=SC2086  # a list of names
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing > /dev/null 2>&1 ||
        { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing > /dev/null; } ||
        cannot "could not install$missing; try apt-get install$missing"
}

check_machine() {
    [ "$(uname -s)" = Linux ] || cannot "needs Linux, this is $(uname -s)"
    [ "$(id -u)" = 0 ] || cannot "needs root for network namespaces, mounts and cgroups; run it with sudo or in a virtual machine"
    local folder
    for folder in cpu memory pids; do
        [ -d /sys/fs/cgroup/$folder ] || grep -qsw $folder /sys/fs/cgroup/cgroup.controllers ||
            cannot "needs the cgroup controller '$folder' below /sys/fs/cgroup; this container or kernel has none"
    done
    # Version 1 keeps a folder for each controller, version 2 one for all.
    folder=/sys/fs/cgroup
    [ -e $folder/cgroup.controllers ] || folder=$folder/memory
    mkdir $folder/tandem-probe 2> /dev/null || [ -d $folder/tandem-probe ] || cannot "may not make cgroups in $folder; a container must be privileged for that"
    rmdir $folder/tandem-probe
    command -v go > /dev/null || [ -x "$programs/bin/pause" ] ||
        cannot "needs Go to build Kubernetes from source: install it from https://go.dev/dl"
}
