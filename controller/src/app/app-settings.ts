import { integer, list, type ValuesOf } from "@holdfast/common/config.ts";

/** Where issuers are, as clients and engines see them. */
export const appSettings = {
  issuerAddresses: list("HOLDFAST_ISSUER_ADDRESSES", "Addresses that end users reach the issuers by", "127.0.0.1"),
  issuerPort: integer("HOLDFAST_ISSUER_PORT", "Port of the issuers; any other than 443 is in their URLs", 443),
  issuersFrom: list("HOLDFAST_ISSUERS_FROM", "Networks (CIDRs) from which issuers reach databases", "127.0.0.1/32"),
  domainServers: list(
    "HOLDFAST_DOMAIN_SERVERS",
    "Name servers (address:port) that are asked for the records of users' domains; empty for those of this host",
    "",
  ),
} as const;

export type AppSettings = ValuesOf<typeof appSettings>;
