import { create } from "@bufbuild/protobuf";
import { filesRegion } from "@holdfast/common/engine-catalog/files.ts";
import { type FilesConnection, FilesConnectionSchema } from "@holdfast/proto/holdfast/v1/files_pb.ts";
import { privateNameOf } from "#fleet/zone/dns-record.ts";
import type { FilesOutputs } from "#resource-kind/outputs.ts";
import { bucketHostOf } from "../service/network/service-names.ts";
import type { FilesKeyPair } from "./files-key-changes.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";

/** Name of the bucket: the first label of the hostname, which is unique and never changes. */
export function bucketOf({ hostname }: Pick<ManagedServiceObject["spec"], "hostname">): string {
  return hostname.split(".", 1)[0] ?? hostname;
}

function endpointOf(host: string, port: number): string {
  return port === 443 ? `https://${host}` : `https://${host}:${port}`;
}

/** Outputs for a consumer that is not in the private network, with its key. */
export function publicFilesOutputs(spec: ManagedServiceObject["spec"], pair: FilesKeyPair): FilesOutputs {
  return filesOutputs(spec, spec.hostname, pair);
}

/** Outputs for a consumer in the private network, with its key. */
export function privateFilesOutputs(spec: ManagedServiceObject["spec"], pair: FilesKeyPair): FilesOutputs {
  return filesOutputs(spec, privateNameOf(spec.hostname), pair);
}

function filesOutputs(spec: ManagedServiceObject["spec"], host: string, { key, secret }: FilesKeyPair): FilesOutputs {
  return {
    type: "files",
    endpoint: endpointOf(host, spec.port),
    bucket: bucketOf(spec),
    accessKeyId: key.spec.username,
    secretAccessKey: secret,
  };
}

/** All that an S3 client needs to connect, except a key. `trustBundle` as in `connectionOf`. */
export function filesConnectionOf({ spec }: ManagedServiceObject, trustBundle: string): FilesConnection {
  const { hostname: host, port } = spec;
  return create(FilesConnectionSchema, {
    endpoint: endpointOf(host, port),
    bucket: bucketOf(spec),
    region: filesRegion,
    host,
    port,
    privateEndpoint: endpointOf(privateNameOf(host), port),
    caCertificate: trustBundle,
    ...(spec.bucketHost === true && { bucketEndpoint: endpointOf(bucketHostOf(host), port) }),
  });
}
