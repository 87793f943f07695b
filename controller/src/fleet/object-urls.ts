import type { MintObjectUrlsRequest, ObjectUrls } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";

/** Lets machines at objects of the store that are theirs to write or to read now. */
export interface ObjectUrlGrants {
  /** Throws an RpcFailure of PERMISSION_DENIED for what is not the machine's, and of UNAVAILABLE where there is no store. */
  mint(machineId: string, request: MintObjectUrlsRequest, signal: AbortSignal): Promise<ObjectUrls>;
}
