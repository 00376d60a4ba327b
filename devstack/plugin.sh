# shellcheck shell=bash
# devstack sources this with a mode and a phase. lib/placement does the rest: clone, configure, migrate, start.

function remove_reference {
    # Both provide the package "placement"; in one environment their files would mix.
    pip_uninstall openstack-placement || true
}

function install_extras {
    setup_develop "$PLACEMENT_DIR" "$PLACEMENT_SERVER_EXTRAS"
}

function remove_server {
    pip_uninstall placement-server || true
}

case "$1 ${2:-}" in
    "stack pre-install") remove_reference ;;
    "stack install") install_extras ;;
    "clean "*) remove_server ;;
esac
