import { create } from "@bufbuild/protobuf";
import { filesRegion } from "@holdfast/common/engine-catalog/files.ts";
import { type FilesConnection, FilesConnectionSchema } from "@holdfast/proto/holdfast/v1/files_pb.ts";
import { privateNameOf } from "#fleet/zone/dns-record.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";

/** Name of the bucket: the first label of the hostname, which is unique and never changes. */
export function bucketOf({ hostname }: Pick<ManagedServiceObject["spec"], "hostname">): string {
  return hostname.split(".", 1)[0] ?? hostname;
}

/** All that an S3 client needs to connect, except a key. `trustBundle` as in `connectionOf`. */
export function filesConnectionOf({ spec }: ManagedServiceObject, trustBundle: string): FilesConnection {
  const { hostname: host, port } = spec;
  return create(FilesConnectionSchema, {
    endpoint: `https://${host}:${port}`,
    bucket: bucketOf(spec),
    region: filesRegion,
    host,
    port,
    privateEndpoint: `https://${privateNameOf(host)}:${port}`,
    caCertificate: trustBundle,
  });
}
