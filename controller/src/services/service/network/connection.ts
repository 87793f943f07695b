import { create } from "@bufbuild/protobuf";
import { defaultUser } from "@holdfast/common/engine-catalog/default-names.ts";
import { enginePortOf, topologyOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { type Connection, ConnectionSchema } from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { privateNameOf } from "#fleet/zone/dns-record.ts";
import { engineProfileOf } from "../../engine/engine-profiles.ts";
import type { ManagedServiceObject } from "../managed-service.ts";
import { clientPorts, poolerPortOf } from "../pooler.ts";
import { privatePortOf } from "../private-listener.ts";
import { replicaHostnameOf } from "./service-names.ts";
import { nodeRoleOf } from "../managed-service-message.ts";

/**
 * All that a client needs to connect, except the password. `trustBundle`: PEM certificates of the authorities that
 * issued the service's certificate.
 */
export function connectionOf(service: ManagedServiceObject, trustBundle: string): Connection {
  const { spec, status } = service;
  const privateHost = privateNameOf(spec.hostname);
  const profile = engineProfileOf(spec.databaseType);
  const poolerPort = poolerPortOf(spec);
  const privatePort = privatePortOf(spec);
  const username = profile.hasDefaultUser === false ? "" : defaultUser;
  const target = (host: string, port = spec.port) => ({
    host,
    port,
    username,
    database: profile.connectionDatabase,
  });
  const uri = (host: string, port?: number) => profile.uri(target(host, port));
  return create(ConnectionSchema, {
    host: spec.hostname,
    port: spec.port,
    user: username,
    database: profile.connectionDatabase,
    uri: uri(spec.hostname),
    caCertificate: trustBundle,
    privateHost,
    privateUri: uri(privateHost),
    replicaUri: topologyOf(spec.databaseType) === "peers" ? "" : uri(replicaHostnameOf(spec.hostname)),
    ...profile.connectionForms?.({
      service: target(spec.hostname),
      nodeHosts: spec.nodes.map(({ hostname }) => hostname),
      enginePort: enginePortOf(spec.databaseType, spec.port) ?? spec.port,
      ...(privatePort !== undefined && {
        privateListener: { port: privatePort, nodeHosts: spec.nodes.map(({ hostname }) => privateNameOf(hostname)) },
      }),
    }),
    ...(poolerPort !== undefined && { pooledUri: uri(spec.hostname, poolerPort) }),
    listeners: [
      ...Object.entries(clientPorts(spec)).flatMap(([name, port]) => [
        { name, port, audience: "public", tls: "required", host: spec.hostname },
        { name, port, audience: "private", tls: "required", host: privateHost },
      ]),
      ...(privatePort === undefined
        ? []
        : [{ name: "private", port: privatePort, audience: "private", tls: "none", host: privateHost }]),
    ],
    nodes: spec.nodes.map((node) => {
      const placed = status.nodes.filter(({ id, address }) => id === node.id && address !== "");
      return {
        id: node.id,
        role: nodeRoleOf(service, node),
        hostname: node.hostname,
        addresses: placed.map(({ publicAddress }) => publicAddress),
        privateHostname: privateNameOf(node.hostname),
        privateAddresses: placed.map(({ address }) => address),
      };
    }),
  });
}
