# Runs in the guest: does what the host writes into FOLDER, one command after the other, until there is a file "end".
mkdir -p /host
mount -t hostfs -o / none /host || exit 1
cd "/host$FOLDER" || exit 1
echo "ready for commands"
turn=1
until [ -e end ]; do
    if [ -e $turn.command ]; then
        (cd / && . "/host$FOLDER/$turn.command") >$turn.log 2>&1
        echo $? >$turn.new && mv $turn.new $turn.status
        turn=$((turn + 1))
    else
        sleep 0.05
    fi
done
