import { randomBytes } from "node:crypto";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  status as Code,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type sendUnaryData,
} from "@grpc/grpc-js";
import { grpcService } from "@holdfast/mtls/grpc-service.ts";
import { provenKey } from "@holdfast/controller/kernel/pki/issue.ts";
import type { UrlSigner } from "@holdfast/controller/kernel/objects/url-signer.ts";
import { fingerprintOf } from "@holdfast/common/fingerprint.ts";
import {
  type MintObjectUrlsRequest,
  type ObjectUrls,
  ObjectUrlsSchema,
} from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import {
  type AgentFrame,
  AgentService,
  type CertificateResponse,
  CertificateResponseSchema,
  type ControllerFrame,
  ControllerFrameSchema,
  EnrollmentService,
  type EnrollRequest,
  type Hello,
  type InstanceObservation,
  type RenewCertificateRequest,
  type Sample,
} from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { type TaskResult, TaskClass, TaskSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { payloadsOfMemory } from "./fake-controller-payloads.ts";
import { createTestAuthority } from "../controller/test-authority.ts";

type Stream = ServerDuplexStream<AgentFrame, ControllerFrame>;

/** A controller that a test controls: it speaks the agent's protocol over real TLS. */
export interface FakeController {
  readonly address: string;
  readonly caFingerprint: string;
  readonly installationId: string;
  /** Enrollment tokens, each valid once. */
  readonly tokens: Set<string>;
  readonly hellos: Hello[];
  readonly enrollments: string[];
  readonly renewals: string[];
  readonly results: TaskResult[];
  readonly observations: InstanceObservation[];
  readonly progress: { taskId: string; progressPct: number }[];
  /** Samples in the order of arrival, including repeated ones. */
  readonly samples: Sample[];
  /** False: samples are rejected, and the agent sends them again after 100 ms. */
  storesSamples: boolean;
  /** Interval between samples that the welcome of later sessions requests. */
  sampleIntervalMs: number;
  /** Interval between heartbeats of sessions from now on; three without an acknowledgment end one. */
  heartbeatIntervalMs: number;
  /** Serial numbers of the sessions' client certificates. */
  readonly serials: string[];
  /** Lifetime of the certificates that are issued from now on. */
  lifetimes: { identityMs: number; serverMs: number };
  /** True: certificates of enrollments are issued, and the responses lost. */
  dropsEnrollmentResponses: boolean;
  /** False: results are not acknowledged. */
  acknowledges: boolean;
  readonly payloads: Map<string, Buffer>;
  /** Times of requests for the primary lease, each of which is granted. */
  readonly leaseRequests: number[];
  /** Signs URLs of objects; undefined: requests of agents are rejected. */
  signer: UrlSigner | undefined;
  /** Requests for URLs of objects so far. */
  readonly urlRequests: MintObjectUrlsRequest[];
  readonly openSessions: number;
  deliver(task: MessageInitShape<typeof TaskSchema>): void;
  /** Sends a task and waits for its result. */
  perform(task: MessageInitShape<typeof TaskSchema>): Promise<TaskResult>;
  send(frame: NonNullable<MessageInitShape<typeof ControllerFrameSchema>["frame"]>): void;
  /** True: a stream is closed after its hello, as by a controller that stops. */
  closesStreams: boolean;
  /** Number of handover probes that were closed because of `closesStreams`. */
  readonly closedProbes: number;
  /** Closes all streams. */
  cut(): void;
  close(): Promise<void>;
}

export async function startFakeController(): Promise<FakeController> {
  const installationId = "test";
  const authority = await createTestAuthority();
  const { certificate, privateKey } = await authority.identityOf(installationId, { kind: "controller", id: "c-1" });
  const payloads = new Map<string, Buffer>();
  const streams = new Set<Stream>();
  const spentBy = new Map<string, string>();
  const waiting = new Map<string, { task: MessageInitShape<typeof TaskSchema>; resolve(result: TaskResult): void }>();
  let sequence = 0;

  /**
   * A response with a certificate for the request's key: for a client with this URI, or for the machine's server
   * without one.
   */
  const certify = async (request: Uint8Array, uri: string | undefined, lifetimeMs: number) => {
    const issued = await authority.issue({
      commonName: "test",
      publicKey: await provenKey(request),
      ...(uri === undefined ? { names: ["db.local.test"] } : { uris: [uri] }),
      notAfter: new Date(Date.now() + lifetimeMs),
    });
    return create(CertificateResponseSchema, {
      chain: [issued.der, authority.certificate],
      trustBundle: authority.trustBundle,
      notAfter: timestampFromMs(issued.notAfter.getTime()),
    });
  };
  const refuse = (details: string) => ({ code: Code.PERMISSION_DENIED, details });

  const grpc = new Server();
  grpc.addService(grpcService(EnrollmentService), {
    enroll(call: ServerUnaryCall<EnrollRequest, CertificateResponse>, done: sendUnaryData<CertificateResponse>) {
      const { token, machineId, certificateRequest } = call.request;
      const enrollment = async () => {
        const key = Buffer.from((await provenKey(certificateRequest)).rawData).toString("hex");
        if (!self.tokens.delete(token) && spentBy.get(token) !== key) throw new Error("the token is not good");
        spentBy.set(token, key);
        self.enrollments.push(machineId);
        return certify(certificateRequest, `holdfast://test/machine/${machineId}`, self.lifetimes.identityMs);
      };
      enrollment().then(
        (response) =>
          self.dropsEnrollmentResponses ? done({ code: Code.UNAVAILABLE, details: "lost" }) : done(null, response),
        (error: Error) => done(refuse(error.message)),
      );
    },
  });
  grpc.addService(grpcService(AgentService), {
    renewCertificate(
      call: ServerUnaryCall<RenewCertificateRequest, CertificateResponse>,
      done: sendUnaryData<CertificateResponse>,
    ) {
      self.renewals.push("identity");
      certify(call.request.certificateRequest, "holdfast://test/machine/m-1", self.lifetimes.identityMs).then(
        (response) => done(null, response),
        (error: Error) => done(refuse(error.message)),
      );
    },
    issueServerCertificate(
      call: ServerUnaryCall<RenewCertificateRequest, CertificateResponse>,
      done: sendUnaryData<CertificateResponse>,
    ) {
      self.renewals.push("server");
      certify(call.request.certificateRequest, undefined, self.lifetimes.serverMs).then(
        (response) => done(null, response),
        (error: Error) => done(refuse(error.message)),
      );
    },
    session(call: Stream) {
      streams.add(call);
      self.serials.push(call.getAuthContext().sslPeerCertificate?.serialNumber ?? "none");
      call.on("data", (frame: AgentFrame) => receive(call, frame));
      call.on("cancelled", () => streams.delete(call));
      call.on("end", () => streams.delete(call));
      call.on("error", () => streams.delete(call));
    },
    mintObjectUrls(call: ServerUnaryCall<MintObjectUrlsRequest, ObjectUrls>, done: sendUnaryData<ObjectUrls>) {
      self.urlRequests.push(call.request);
      if (self.signer === undefined) return done({ code: Code.UNAVAILABLE, details: "no store" });
      mintAll(self.signer, call.request).then(
        (urls) => done(null, urls),
        (error: Error) => done(refuse(error.message)),
      );
    },
    ...payloadsOfMemory(payloads),
  });

  function receive(call: Stream, { frame, sequence: number }: AgentFrame): void {
    switch (frame.case) {
      case "hello":
        if (self.closesStreams) {
          if (frame.value.standby) closedProbes += 1;
          streams.delete(call);
          call.emit("error", { code: Code.UNAVAILABLE, details: "away" });
          return;
        }
        // A handover probe gets a welcome alone; an agent that replaced another gets everything.
        if (frame.value.standby) streams.delete(call);
        else self.hellos.push(frame.value);
        write(call, {
          case: "welcome",
          value: {
            controllerId: "c-1",
            heartbeatIntervalMs: self.heartbeatIntervalMs,
            controllers: [],
            sampleIntervalMs: self.sampleIntervalMs,
          },
        });
        if (!frame.value.standby) deliverTasks(call, frame.value.replacesSessionId !== "");
        return;
      case "heartbeat":
        return write(call, { case: "heartbeatAck", value: { sequence: number } });
      case "observation":
        if (frame.value.instance !== undefined) self.observations.push(frame.value.instance);
        return;
      case "primaryLeaseRequest":
        self.leaseRequests.push(Date.now());
        return write(call, { case: "primaryLeaseResponse", value: { number: frame.value.number, granted: true } });
      case "taskProgress":
        self.progress.push(frame.value);
        return;
      case "taskResult":
        self.results.push(frame.value);
        waiting.get(frame.value.taskId)?.resolve(frame.value);
        waiting.delete(frame.value.taskId);
        if (self.acknowledges) write(call, { case: "resultAck", value: { taskId: frame.value.taskId } });
        return;
      case "samples": {
        const { batch, samples } = frame.value;
        if (self.storesSamples) self.samples.push(...samples);
        return write(call, { case: "samplesAck", value: { batch, stored: self.storesSamples, retryMs: 100 } });
      }
      case undefined:
        throw new Error("a frame has no content");
    }
  }

  /**
   * Durable tasks are delivered until they have a result; the next agent of a machine gets the others again as well.
   */
  function deliverTasks(call: Stream, succeeds: boolean): void {
    for (const { task } of waiting.values()) {
      if (succeeds || task.class === TaskClass.DURABLE) write(call, { case: "task", value: create(TaskSchema, task) });
    }
    if (!succeeds) return;
    for (const older of [...streams].filter((stream) => stream !== call)) {
      write(older, { case: "goodbye", value: { reason: "a newer stream is open", controllers: [] } });
      streams.delete(older);
    }
  }

  function write(call: Stream, frame: NonNullable<MessageInitShape<typeof ControllerFrameSchema>["frame"]>): void {
    call.write(create(ControllerFrameSchema, { frame }));
  }

  let closedProbes = 0;
  const self: FakeController = {
    closesStreams: false,
    get closedProbes() {
      return closedProbes;
    },
    address: "",
    caFingerprint: fingerprintOf(authority.certificate),
    installationId,
    tokens: new Set(),
    hellos: [],
    enrollments: [],
    renewals: [],
    results: [],
    observations: [],
    progress: [],
    samples: [],
    storesSamples: true,
    sampleIntervalMs: 15_000,
    heartbeatIntervalMs: 5_000,
    serials: [],
    lifetimes: { identityMs: 3_600_000, serverMs: 3_600_000 },
    dropsEnrollmentResponses: false,
    acknowledges: true,
    payloads,
    leaseRequests: [],
    signer: undefined,
    urlRequests: [],
    get openSessions() {
      return streams.size;
    },
    send(frame) {
      for (const stream of streams) write(stream, frame);
    },
    deliver(task) {
      self.send({ case: "task", value: create(TaskSchema, task) });
    },
    perform(task) {
      sequence += 1;
      const id = task.id ?? `quick-${sequence}-${randomBytes(4).toString("hex")}`;
      const withId = { ...task, id } as MessageInitShape<typeof TaskSchema>;
      const result = new Promise<TaskResult>((resolve) => waiting.set(id, { task: withId, resolve }));
      self.deliver(withId);
      return result;
    },
    cut() {
      for (const stream of streams) stream.emit("error", { code: Code.UNAVAILABLE, details: "cut" });
      streams.clear();
    },
    close() {
      grpc.forceShutdown();
      return Promise.resolve();
    },
  };
  const credentials = new OptionalClientCredentials(authority.trustBundle, privateKey, certificate);
  const port = await new Promise<number>((resolve, reject) =>
    grpc.bindAsync("127.0.0.1:0", credentials, (error, bound) => (error === null ? resolve(bound) : reject(error))),
  );
  return Object.defineProperty(self, "address", { value: `127.0.0.1:${port}` });
}

async function mintAll({ sign, endpoint }: UrlSigner, { uses }: MintObjectUrlsRequest): Promise<ObjectUrls> {
  const expiresInS = 7_200;
  const urls = await Promise.all(
    uses.map(({ method, key }) => sign({ method: method as "PUT" | "GET" | "HEAD", key }, expiresInS)),
  );
  const { addresses, port, trustBundle } = endpoint;
  return create(ObjectUrlsSchema, {
    urls,
    expiresAt: timestampFromMs(Date.now() + expiresInS * 1_000),
    endpoint: { addresses: [...(await addresses())], port, trustBundle: trustBundle() },
  });
}

/** Requests a client certificate and continues without: enrollment has none yet. */
class OptionalClientCredentials extends ServerCredentials {
  constructor(ca: string, key: string, cert: string) {
    super({ requestCert: true, rejectUnauthorized: false }, { ca, key, cert });
  }

  override _equals(other: ServerCredentials): boolean {
    return this === other;
  }
}
