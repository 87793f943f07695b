import { type DescService, fromBinary } from "@bufbuild/protobuf";
import { type GrpcMethod, grpcService } from "@holdfast/mtls/grpc-service.ts";
import {
  type AgentFrame,
  AgentFrameSchema,
  AgentService,
  type ControllerFrame,
  EnrollmentService,
} from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { PeerService } from "@holdfast/proto/holdfast/control/v1/peer_pb.ts";

/** A frame as it came in; `frame` is undefined for bytes that are no frame, so that the session decides and logs. */
export interface ReceivedFrame {
  readonly frame: AgentFrame | undefined;
  readonly sizeBytes: number;
}

const agent = grpcService(AgentService);

const session: GrpcMethod<ReceivedFrame, ControllerFrame> = {
  ...agent.session,
  requestSerialize() {
    throw new Error("controllers do not send agent frames");
  },
  requestDeserialize(bytes) {
    try {
      return { frame: fromBinary(AgentFrameSchema, bytes), sizeBytes: bytes.byteLength };
    } catch {
      return { frame: undefined, sizeBytes: bytes.byteLength };
    }
  },
};

/** The services of the agent listener as grpc-js serves them. */
export const agentDefinition = { ...agent, session };
export const enrollmentDefinition = grpcService(EnrollmentService);
export const peerDefinition = grpcService(PeerService);

export type ServedDefinition<S extends DescService> = ReturnType<typeof grpcService<S>>;
