/* Sends one frame again and again over many connections, and reads the answers: the client that is never the limit.

     repeat PORT CONNECTIONS WINDOW REQUESTS < frame

   Every connection keeps WINDOW requests in flight. REQUESTS answers in all end it; then it prints the seconds that
   took and the bytes of all answers. It exits with 1 if a connection ends or nothing comes for twenty seconds. */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct client {
    int fd;
    long owed;       /* frames that may still be begun */
    size_t written;  /* bytes of the frame that is being sent; 0: none */
    size_t head;     /* bytes of the size that have come */
    unsigned char size[4];
    long missing;    /* bytes of the answer that have not come */
};

static char *frame;
static size_t frame_size;
static long left_to_send, left_to_read;
static long long answered_bytes;
static char sink[1 << 20];

static void fail(const char *what) {
    fprintf(stderr, "repeat: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void read_frame(void) {
    size_t room = 1 << 16;
    frame = malloc(room);
    for (;;) {
        ssize_t got = read(0, frame + frame_size, room - frame_size);
        if (got < 0) fail("standard input");
        if (got == 0) break;
        frame_size += (size_t)got;
        if (frame_size == room) frame = realloc(frame, room *= 2);
    }
    if (frame == NULL || frame_size < 5) fail("no frame");
}

static int connect_to(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1, bytes = 4 << 20;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0) fail("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

static void send_some(struct client *client) {
    while (client->written > 0 || (client->owed > 0 && left_to_send > 0)) {
        if (client->written == 0) {
            client->owed--;
            left_to_send--;
        }
        ssize_t sent = send(client->fd, frame + client->written, frame_size - client->written, MSG_NOSIGNAL);
        if (sent < 0) {
            if (errno != EAGAIN) fail("send");
            if (client->written == 0) {
                client->owed++;
                left_to_send++;
            }
            return;
        }
        client->written = (client->written + (size_t)sent) % frame_size;
    }
}

static void take(struct client *client, const char *bytes, size_t count) {
    answered_bytes += (long long)count;
    while (count > 0) {
        if (client->missing == 0) {
            client->size[client->head++] = (unsigned char)*bytes++;
            count--;
            if (client->head == 4) {
                uint32_t size;
                memcpy(&size, client->size, 4);
                client->missing = (long)ntohl(size);
                client->head = 0;
            }
            continue;
        }
        size_t part = count < (size_t)client->missing ? count : (size_t)client->missing;
        client->missing -= (long)part;
        bytes += part;
        count -= part;
        if (client->missing == 0) {
            client->owed++;
            left_to_read--;
        }
    }
}

static void receive_some(struct client *client) {
    for (;;) {
        ssize_t got = recv(client->fd, sink, sizeof sink, 0);
        if (got < 0 && errno == EAGAIN) return;
        if (got <= 0) fail("the broker closed a connection");
        take(client, sink, (size_t)got);
        if ((size_t)got < sizeof sink) return;
    }
}

int main(int count, char **words) {
    if (count != 5) return 2;
    long connections = atol(words[2]), window = atol(words[3]);
    struct client *clients = calloc((size_t)connections, sizeof *clients);
    struct epoll_event ready[256];
    struct timespec begun, ended;
    int poll = epoll_create1(0);
    read_frame();
    left_to_send = left_to_read = atol(words[4]);
    for (long number = 0; number < connections; number++) {
        struct epoll_event wish = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = &clients[number]};
        clients[number].fd = connect_to(atoi(words[1]));
        clients[number].owed = window;
        if (epoll_ctl(poll, EPOLL_CTL_ADD, clients[number].fd, &wish) < 0) fail("epoll");
    }
    clock_gettime(CLOCK_MONOTONIC, &begun);
    while (left_to_read > 0) {
        int events = epoll_wait(poll, ready, 256, 20000);
        if (events == 0) errno = ETIMEDOUT;
        if (events <= 0) fail("waiting for the broker");
        for (int number = 0; number < events; number++) {
            struct client *client = ready[number].data.ptr;
            if (ready[number].events & (EPOLLIN | EPOLLHUP)) receive_some(client);
            send_some(client);
        }
    }
    clock_gettime(CLOCK_MONOTONIC, &ended);
    printf("%.6f %lld\n", (double)(ended.tv_sec - begun.tv_sec) + (double)(ended.tv_nsec - begun.tv_nsec) / 1e9,
           answered_bytes);
    return 0;
}
