/*
 * User-mode Linux 6.1 keeps 2,696 bytes of a processor's extended state. A host whose processors
 * have more (AMX) takes back only the whole of it, so that the guest's first process would die:
 * what is missing is added here, as it is. Loaded before libc (LD_PRELOAD).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

static long (*of_libc)(int, ...);

__attribute__((constructor)) static void find(void)
{
	of_libc = (long (*)(int, ...))dlsym(RTLD_NEXT, "ptrace");
}

long ptrace(enum __ptrace_request request, ...)
{
	static char state[65536]; /* The guest has one processor, and calls from one thread. */
	struct iovec whole = { state, sizeof state };
	struct iovec *part;
	long address;
	int pid;
	va_list rest;

	va_start(rest, request);
	pid = va_arg(rest, int);
	address = va_arg(rest, long);
	part = va_arg(rest, void *);
	va_end(rest);
	if (request == PTRACE_SETREGSET && address == NT_X86_XSTATE &&
	    !of_libc(PTRACE_GETREGSET, pid, address, &whole) && part->iov_len < whole.iov_len) {
		memcpy(state, part->iov_base, part->iov_len);
		part = &whole;
	}
	return of_libc(request, pid, address, part);
}
