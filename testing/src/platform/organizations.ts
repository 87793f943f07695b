import type { DescService } from "@bufbuild/protobuf";
import { OrganizationService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { type GrpcCalls, type GrpcChannel, openGrpc, withGrpc } from "../api/grpc-calls.ts";
import type { Platform } from "./platform.ts";
import { basic } from "../api/rest.ts";

export interface TestKey {
  readonly id: string;
  readonly secret: string;
  /** Value of the header Authorization. */
  readonly authorization: string;
}

/** Operator's actions for tests: organizations and keys. */
export interface Organizations {
  create(name: string, services?: number): Promise<string>;
  /** A key of the organization; all scopes of an owner when none are named. */
  createKey(organizationId: string, scopes?: string[]): Promise<TestKey>;
  revokeKey(id: string): Promise<void>;
  /** Id of the installation's first organization. */
  first(): Promise<string>;
  close(): void;
}

/** The platform's gRPC port with a credential; undefined: without one. */
export function grpcAs(platform: Platform, authorization: string | undefined): GrpcChannel {
  return openGrpc({ url: platform.admin.grpc_url, ca: platform.ca, authorization });
}

/** Runs calls of one service as the platform's operator. */
export function asOperator<S extends DescService, T>(
  platform: Platform,
  service: S,
  run: (rpcs: GrpcCalls<S>) => Promise<T>,
): Promise<T> {
  const { ca, operator: authorization } = platform;
  return withGrpc({ url: platform.admin.grpc_url, ca, authorization }, service, run);
}

export function createOrganizations(platform: Platform): Organizations {
  const channel = grpcAs(platform, platform.operator);
  const rpcs = channel.of(OrganizationService);
  return {
    async create(name, services) {
      return (await rpcs.createOrganization({ name, ...(services === undefined ? {} : { quota: { services } }) })).id;
    },
    async createKey(organizationId, scopes = []) {
      const { apiKey, secret } = await rpcs.createApiKey({ organizationId, name: "test", scopes });
      const id = apiKey?.id ?? "";
      return { id, secret, authorization: basic(id, secret) };
    },
    async revokeKey(id) {
      await rpcs.revokeApiKey({ id });
    },
    async first() {
      const { organizations } = await rpcs.listOrganizations({});
      const first = organizations.find(({ name }) => name === "default");
      if (first === undefined) throw new Error("there is no organization default");
      return first.id;
    },
    close: () => channel.close(),
  };
}
