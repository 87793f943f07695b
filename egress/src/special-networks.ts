/**
 * IPv4 networks that are not public (RFC 6890 and its registries as of 2025) or embed other addresses (RFC 6052, 3056,
 * 4380), and public addresses at which a cloud serves its own machines. For IPv6 only 2000::/3 is public, except the
 * networks below. Metadata services of other clouds are in 169.254.0.0/16, 100.64.0.0/10, 192.0.0.0/24 and fc00::/7.
 */
export const specialIpv4 = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  // Azure's virtual public address: agent, DNS, DHCP and health of a virtual machine.
  "168.63.129.16/32",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.31.196.0/24",
  "192.52.193.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "192.175.48.0/24",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
] as const;

export const publicIpv6 = "2000::/3";

/** 2001::/23 contains Teredo and ORCHID; 2002::/16 is 6to4. NAT64, mapped and local addresses are outside 2000::/3. */
export const specialIpv6 = ["2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"] as const;
