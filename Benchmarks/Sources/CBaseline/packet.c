#include "internal.h"

void packet_init(struct packet *packet) {
    packet->capacity = headroom + 64;
    packet->data = malloc(packet->capacity);
    packet_reset(packet);
}

void packet_grow(struct packet *packet, size_t needed) {
    while (packet->capacity < needed) packet->capacity *= 2;
    packet->data = realloc(packet->data, packet->capacity);
}

void packet_free(struct packet *packet) {
    free(packet->data);
}
