/* GETATTR of the root, a number of them outstanding all the time: libnfs at its leanest, on its raw
 * interface, with one connection and poll(). Usage: getattr HOST PORT EXPORT OUTSTANDING SECONDS */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <nfsc/libnfs.h>
#include <nfsc/libnfs-raw.h>
#include <nfsc/libnfs-raw-mount.h>
#include <nfsc/libnfs-raw-nfs.h>

static char handle[64];
static struct GETATTR3args question;
static int ready, outstanding;
static unsigned long answered;

static void fail(struct rpc_context *rpc, const char *what) {
    fprintf(stderr, "getattr: %s: %s\n", what, rpc_get_error(rpc));
    exit(1);
}

static void connected(struct rpc_context *rpc, int status, void *data, void *own) {
    (void)data, (void)own;
    if (status != RPC_STATUS_SUCCESS) fail(rpc, "connect");
    ready = 1;
}

static void mounted(struct rpc_context *rpc, int status, void *data, void *own) {
    mountres3 *result = data;
    (void)own;
    if (status != RPC_STATUS_SUCCESS || result->fhs_status != MNT3_OK) fail(rpc, "MNT");
    fhandle3 *root = &result->mountres3_u.mountinfo.fhandle;
    memcpy(handle, root->fhandle3_val, root->fhandle3_len);
    question.object.data.data_val = handle;
    question.object.data.data_len = root->fhandle3_len;
    ready = 1;
}

static void ask(struct rpc_context *rpc);

static void got(struct rpc_context *rpc, int status, void *data, void *own) {
    GETATTR3res *result = data;
    (void)own;
    if (status != RPC_STATUS_SUCCESS || result->status != NFS3_OK) fail(rpc, "GETATTR");
    answered++, outstanding--;
    ask(rpc);
}

static void ask(struct rpc_context *rpc) {
    outstanding++;
    if (rpc_nfs3_getattr_async(rpc, got, &question, NULL)) fail(rpc, "GETATTR");
}

static void serve(struct rpc_context *rpc) {
    struct pollfd socket = {rpc_get_fd(rpc), rpc_which_events(rpc), 0};
    if (poll(&socket, 1, 5000) <= 0 || rpc_service(rpc, socket.revents)) fail(rpc, "service");
}

static void await(struct rpc_context *rpc) {
    while (!ready) serve(rpc);
    ready = 0;
}

int main(int count, char **words) {
    if (count != 6) return 2;
    int port = atoi(words[2]);
    struct rpc_context *rpc = rpc_init_context();
    if (rpc_connect_port_async(rpc, words[1], port, MOUNT_PROGRAM, MOUNT_V3, connected, NULL))
        fail(rpc, "connect");
    await(rpc);
    if (rpc_mount3_mnt_async(rpc, mounted, words[3], NULL)) fail(rpc, "MNT");
    await(rpc);
    rpc_destroy_context(rpc);
    rpc = rpc_init_context();
    if (rpc_connect_port_async(rpc, words[1], port, NFS_PROGRAM, NFS_V3, connected, NULL))
        fail(rpc, "connect");
    await(rpc);
    time_t end = time(NULL) + atoi(words[5]);
    for (int number = atoi(words[4]); number > 0; number--) ask(rpc);
    while (time(NULL) < end) serve(rpc);
    printf("%lu answered\n", answered);
    return 0;
}
