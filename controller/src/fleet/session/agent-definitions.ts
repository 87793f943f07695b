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

/** A received message. `frame` is undefined if the bytes are not a valid frame; the session handles that. */
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

/** Service definitions of the agent listener, for grpc-js. */
export const agentDefinition = { ...agent, session };
export const enrollmentDefinition = grpcService(EnrollmentService);
export const controllerDefinition = grpcService(PeerService);

export type ServedDefinition<S extends DescService> = ReturnType<typeof grpcService<S>>;
