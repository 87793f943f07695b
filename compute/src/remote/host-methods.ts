import { grpcService } from "@holdfast/mtls/grpc-service.ts";
import { HostService } from "@holdfast/proto/holdfast/host/v1/host_pb.ts";

/** HostService as grpc-js serves and calls it. */
export const hostMethods = grpcService(HostService);

/** Message limit: the rules of a host come in one message. */
export const messageBytes = 64 << 20;
