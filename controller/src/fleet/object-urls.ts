import type { MintObjectUrlsRequest, ObjectUrls } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";

import { definePart } from "#kernel/part.ts";

/** Mints presigned URLs of the objects that a machine may read or write now. */
export interface ObjectUrlGrants {
  /** Throws an RpcFailure: PERMISSION_DENIED for objects of other machines, UNAVAILABLE without an object store. */
  mint(machineId: string, request: MintObjectUrlsRequest, signal: AbortSignal): Promise<ObjectUrls>;
}

export const objectUrlGrantsPart = definePart<ObjectUrlGrants | undefined>("grants of object URLs");
