/*
record = "HardwareLink"
summary = "Links of one chip to devices of its kind and to its host"
grain = "one row per link"
table = [
    "link", "generation", "connects.kept", "link_count.kept", "bandwidth_bytes_per_s.kept", "lane_count",
    "topology", "domain_size", "latency_s", "energy_per_byte_j", "basis", "source",
]
[parameters]
hardware = { type = "VARCHAR", meaning = "catalogue id" }
[columns]
link_index = { type = "INTEGER", meaning = "order in the description" }
link = { type = "VARCHAR", meaning = "interconnect: nvlink, pcie, ici ..." }
generation = { type = "VARCHAR", meaning = "generation as the vendor or standard counts; empty where there is only one" }
connects = { type = "VARCHAR", meaning = "device (others of its kind), host, or guest (a port for other devices)" }
topology = { type = "VARCHAR", meaning = "topology between devices; empty for a host or where unknown" }
link_count = { type = "INTEGER", meaning = "links of the device, to one peer or to several" }
lane_count = { type = "INTEGER", null = true, meaning = "lanes of one link, in one direction; null without lanes" }
bandwidth_bytes_per_s = { type = "DOUBLE", unit = "B/s", meaning = "bandwidth in one direction, all links together" }
domain_size = { type = "INTEGER", null = true, meaning = "devices that the links can join, this one included; null without a limit" }
latency_s = { type = "DOUBLE", unit = "s", meaning = "latency from a device to the next: the cost of a collective's step" }
energy_per_byte_j = { type = "DOUBLE", unit = "J/B", meaning = "energy of one sent byte together with one received byte" }
basis = { type = "VARCHAR", meaning = "basis of the bandwidth: measured, published, derived, scaled, recalled or assumed" }
source = { type = "VARCHAR", meaning = "source of the bandwidth" }
*/
SELECT
    link_index, link, generation, connects, topology, link_count, lane_count, bandwidth_bytes_per_s, domain_size,
    latency_s, energy_per_byte_j, basis, source
FROM hardware_links
WHERE hardware = $hardware AND is_current
ORDER BY link_index
