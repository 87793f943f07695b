import { create } from "@bufbuild/protobuf";
import { defaultDatabase, defaultUser } from "@holdfast/common/engine-catalogue/default-names.ts";
import { type Connection, ConnectionSchema } from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { privateNameOf } from "../zone/private-name.ts";
import type { ManagedServiceObject } from "./managed-service.ts";
import { roleOf } from "./managed-service-message.ts";

// biome-ignore format: a table, aligned so that it reads as one
const forms: Record<string, { database: string; uri: (host: string, port: number) => string }> = {
  postgresql: { database: defaultDatabase, uri: (host, port) => `postgres://${defaultUser}@${host}:${port}/${defaultDatabase}?sslmode=verify-full` },
  valkey:     { database: "0",             uri: (host, port) => `rediss://${defaultUser}@${host}:${port}/0` },
};

/** Pure: all that a client needs but the password. `trustBundle`: PEM of the authorities behind the certificate. */
export function connectionOf(service: ManagedServiceObject, trustBundle: string): Connection {
  const { spec, status } = service;
  const privateHost = privateNameOf(spec.hostname);
  const form = forms[spec.databaseType];
  if (form === undefined) throw new Error(`no form of connection for ${spec.databaseType}`);
  return create(ConnectionSchema, {
    host: spec.hostname,
    port: spec.port,
    user: defaultUser,
    database: form.database,
    uri: form.uri(spec.hostname, spec.port),
    caCertificate: trustBundle,
    privateHost,
    privateUri: form.uri(privateHost, spec.port),
    listeners: [
      { name: "engine", port: spec.port, audience: "public", tls: "required", host: spec.hostname },
      { name: "engine", port: spec.port, audience: "private", tls: "required", host: privateHost },
    ],
    nodes: spec.nodes.map((node) => {
      const made = status.nodes.filter(({ id, address }) => id === node.id && address !== "");
      return {
        id: node.id,
        role: roleOf(node),
        hostname: node.hostname,
        addresses: made.map(({ publicAddress }) => publicAddress),
        privateHostname: privateNameOf(node.hostname),
        privateAddresses: made.map(({ address }) => address),
      };
    }),
  });
}
