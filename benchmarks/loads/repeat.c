/* Sends frames again and again over many connections, and reads the answers: the client that is never the limit.

     repeat PORT CONNECTIONS WINDOW REQUESTS < frames

   The frames are sent in turn, whatever the connection. First every connection has one exchange, which does not count:
   a connection that waits to be accepted is no answer that is late. Then every connection keeps WINDOW requests in
   flight, until there are REQUESTS answers. It prints the seconds that took, the bytes of all answers, and the median
   and the 99th percentile of the microseconds from a request to its answer. It exits with 1 if a connection ends or
   nothing comes for sixty seconds. */

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
    char *frame;     /* the one that is being sent */
    size_t size;     /* of it */
    size_t written;  /* bytes of it that have left; 0: none is being sent */
    double *begun;   /* a ring of WINDOW moments at which the requests in flight were sent */
    long first, last;
    size_t head;     /* bytes of the size that have come */
    unsigned char answer[4];
    long missing;    /* bytes of the answer that have not come */
};

static char *frames, **starts;
static size_t frames_size;
static long frame_count, next_frame, window, counting;
static long left_to_send, left_to_read, noted;
static long long answered_bytes;
static float *taken_us;
static char sink[1 << 20];

static void fail(const char *what) {
    fprintf(stderr, "repeat: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static size_t frame_size(const char *frame) {
    uint32_t size;
    memcpy(&size, frame, 4);
    return 4 + (size_t)ntohl(size);
}

static void read_frames(void) {
    size_t room = 1 << 16;
    frames = malloc(room);
    for (;;) {
        ssize_t got = read(0, frames + frames_size, room - frames_size);
        if (got < 0) fail("standard input");
        if (got == 0) break;
        frames_size += (size_t)got;
        if (frames_size == room) frames = realloc(frames, room *= 2);
    }
    for (size_t at = 0; at + 4 <= frames_size; at += frame_size(frames + at)) {
        if ((frame_count & (frame_count - 1)) == 0)
            starts = realloc(starts, sizeof *starts * (size_t)(frame_count ? 2 * frame_count : 1));
        starts[frame_count++] = frames + at;
    }
    errno = EINVAL;
    if (frame_count == 0 || starts[frame_count - 1] + frame_size(starts[frame_count - 1]) != frames + frames_size)
        fail("whole frames are expected on standard input");
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
            client->frame = starts[next_frame];
            client->size = frame_size(client->frame);
        }
        ssize_t sent = send(client->fd, client->frame + client->written, client->size - client->written, MSG_NOSIGNAL);
        if (sent < 0) {
            if (errno != EAGAIN) fail("send");
            return;
        }
        if (client->written == 0) {
            client->owed--;
            left_to_send--;
            next_frame = (next_frame + 1) % frame_count;
            client->begun[client->last++ % window] = now_s();
        }
        client->written = (client->written + (size_t)sent) % client->size;
    }
}

static void answered(struct client *client) {
    double begun = client->begun[client->first++ % window];
    left_to_read--;
    if (!counting) return; /* the first exchange: wait for the others */
    client->owed++;
    taken_us[noted++] = (float)((now_s() - begun) * 1e6);
}

static void take(struct client *client, const char *bytes, size_t count) {
    answered_bytes += (long long)count;
    while (count > 0) {
        if (client->missing == 0) {
            client->answer[client->head++] = (unsigned char)*bytes++;
            count--;
            if (client->head == 4) {
                client->missing = (long)frame_size((char *)client->answer) - 4;
                client->head = 0;
            }
            continue;
        }
        size_t part = count < (size_t)client->missing ? count : (size_t)client->missing;
        client->missing -= (long)part;
        bytes += part;
        count -= part;
        if (client->missing == 0) answered(client);
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

static void exchange(int poll) {
    struct epoll_event ready[256];
    while (left_to_read > 0) {
        int events = epoll_wait(poll, ready, 256, 60000);
        if (events == 0) errno = ETIMEDOUT;
        if (events <= 0) fail("waiting for the broker");
        for (int number = 0; number < events; number++) {
            struct client *client = ready[number].data.ptr;
            if (ready[number].events & (EPOLLIN | EPOLLHUP)) receive_some(client);
            send_some(client);
        }
    }
}

static int compare(const void *one, const void *other) {
    float difference = *(const float *)one - *(const float *)other;
    return (difference > 0) - (difference < 0);
}

int main(int count, char **words) {
    if (count != 5) return 2;
    long connections = atol(words[2]), requests = atol(words[4]);
    struct client *clients = calloc((size_t)connections, sizeof *clients);
    int poll = epoll_create1(0);
    window = atol(words[3]);
    taken_us = malloc(sizeof *taken_us * (size_t)requests);
    read_frames();
    left_to_send = left_to_read = connections;
    for (long number = 0; number < connections; number++) {
        struct epoll_event wish = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = &clients[number]};
        clients[number].fd = connect_to(atoi(words[1]));
        clients[number].owed = 1;
        clients[number].begun = calloc((size_t)window, sizeof(double));
        if (epoll_ctl(poll, EPOLL_CTL_ADD, clients[number].fd, &wish) < 0) fail("epoll");
    }
    exchange(poll);
    counting = 1;
    answered_bytes = 0;
    left_to_send = left_to_read = requests;
    double begun = now_s();
    for (long number = 0; number < connections; number++) {
        clients[number].owed = window;
        send_some(&clients[number]);
    }
    exchange(poll);
    double seconds = now_s() - begun;
    qsort(taken_us, (size_t)requests, sizeof *taken_us, compare);
    printf("%.6f %lld %.1f %.1f\n", seconds, answered_bytes, taken_us[requests / 2], taken_us[requests * 99 / 100]);
    return 0;
}
