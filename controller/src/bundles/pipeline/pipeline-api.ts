import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Call, type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { type PipelineConnectionsSchema, PipelineService } from "@holdfast/proto/holdfast/v1/pipeline_pb.ts";
import { auditOf, organizationOf, principalOf, requireUnlimited } from "#access/caller.ts";
import { covers } from "#access/scopes.ts";
import type { CatalogData } from "#catalog/catalog.ts";
import { notCreated, type Observe } from "#composition/composition-step.ts";
import { compositionKind, type CompositionObject, type Member } from "#composition/composition.ts";
import { costOf } from "#composition/deploy-plan.ts";
import type { Descriptor } from "#composition/descriptor.ts";
import type { Kernel } from "#kernel/kernel.ts";
import { pageByName } from "#kernel/page/cursor.ts";
import type { DatabaseOutputs } from "#resource-kind/outputs.ts";
import { engineProfileOf } from "#services/engine/engine-profiles.ts";
import { requireById, requireKindScopes } from "../composition-access.ts";
import { deleteComposition } from "../delete-composition.ts";
import { launch, type LaunchDeps } from "../launch.ts";
import { offerOf, requireChoice, requireOffer, type Template } from "../template/template.ts";
import type { Templates } from "../template/templates.ts";
import { memberMessage, pipelineFields, pipelineMessage, pipelineTemplateMessage, textOf } from "./pipeline-message.ts";

type Connections = MessageInitShape<typeof PipelineConnectionsSchema>;
type ConnectionFormat = (outputs: DatabaseOutputs, showsSecrets: boolean) => Connections;

const uri: ConnectionFormat = (outputs, showsSecrets) =>
  showsSecrets ? { connectionUri: engineProfileOf(outputs.engine).uri(outputs) } : {};

/** Formats of connection details by role; for other roles they are a URI. */
// biome-ignore format: a table, aligned so that it reads as one
const formats: Readonly<Record<string, ConnectionFormat>> = {
  "kafka-ingestion": ({ host, port, username, password }, showsSecrets) => ({
    bootstrapServers: `${host}:${port}`, securityProtocol: "SASL_SSL", saslMechanism: "SCRAM-SHA-256", username,
    ...(showsSecrets && { password }),
  }),
  search: ({ host, port, username, password }, showsSecrets) => ({
    endpoint: `https://${host}:${port}`, username,
    ...(showsSecrets && { password }),
  }),
  "vector-store":  uri,
  cache:           uri,
  "feature-store": uri,
  "event-store":   uri,
};

export interface PipelineApiDeps extends LaunchDeps, Pick<Kernel, "cursors" | "auditedActs"> {
  readonly catalog: CatalogData;
  readonly templates: Templates;
}

/** The RPCs of pipelines and of their templates. */
export function createPipelineApi(deps: PipelineApiDeps): ServedService {
  const { compositions, kinds, seal, observer, reader, cursors, catalog, templates, auditedActs } = deps;

  const require = (id: string, call: Call) => requireById(compositions, "pipeline", id, call);
  const message = async (pipeline: CompositionObject, call: Call) =>
    pipelineMessage(pipeline, await observer.observe(pipeline, call.signal));
  const centsOf = ({ members }: Descriptor) =>
    members.flatMap(({ kind, spec }) => costOf(kind, spec, kinds)).reduce((sum, { cents }) => sum + cents, 0);

  function templateMessage(template: Template) {
    const { descriptor, reason } = offerOf(template, reader);
    const isPriced = descriptor !== undefined && reason === undefined;
    const { currency } = catalog;
    return pipelineTemplateMessage(template, { reason, cents: isPriced ? centsOf(descriptor) : undefined, currency });
  }

  /** The role of a service in the template; the name of the service if the newest template does not contain it. */
  function roleOf({ spec }: CompositionObject, { name }: Member): string {
    const template = templates.newest.find((each) => each.name === spec.template?.name);
    return template?.resources.find((resource) => resource.name === name)?.role ?? name;
  }

  async function connectionsFor(pipeline: CompositionObject, observe: Observe, showsSecrets: boolean, call: Call) {
    const running = pipeline.status.members.filter((member) => observe(member).phase === "running");
    const found = await Promise.all(
      running.map(async (member) => {
        const outputs = await kinds.of(member.kind).outputs(member.id, call.signal);
        const role = roleOf(pipeline, member);
        return outputs?.type === "database" ? [{ role, connections: connectionsOf(role, outputs, showsSecrets) }] : [];
      }),
    );
    return found.flat();
  }

  const handlers: Handlers<typeof PipelineService> = {
    async listPipelineTemplates(request, call) {
      const page = cursors.open(call, "pipeline-templates", null, request);
      const { items, next } = pageByName(templates.newest, ({ name }) => name, page);
      return { templates: items.map(templateMessage), ...page.next(next) };
    },

    getPipelineTemplate: async ({ id }) => templateMessage(templates.require(id)),

    async createPipeline({ templateId, name, zone, planName, organizationId }, call) {
      requireUnlimited(call);
      const callerOrganizationId = organizationOf(call);
      if (organizationId !== undefined && organizationId !== callerOrganizationId)
        throw new HoldfastError(
          "SCOPE_MISSING",
          "The credential belongs to another organization; use one of the requested organization.",
        );
      const template = templates.require(templateId);
      requireChoice({ zone, planName }, catalog);
      const descriptor = requireOffer(template, reader, name, { zone, planName });
      requireKindScopes(kinds, descriptor.members, call);
      const launchRequest = {
        kind: "pipeline" as const,
        organizationId: callerOrganizationId,
        descriptor,
        template: { name: templateId, version: template.version },
        monthlyCents: centsOf(descriptor),
        zone,
      };
      return launch(deps, launchRequest, (pipeline) => pipelineMessage(pipeline, () => notCreated), call);
    },

    async listPipelines(request, call) {
      const page = { ...cursors.open(call, "pipelines", null, request), organizationId: organizationOf(call) };
      const { items, next } = compositions.page(({ spec }) => spec.kind === "pipeline", page);
      return { pipelines: await Promise.all(items.map(({ object }) => message(object, call))), ...page.next(next) };
    },

    async getPipeline({ id }, call) {
      const { object } = require(id, call);
      const observe = await observer.observe(object, call.signal);
      const showsSecrets = covers(principalOf(call).scopes, "services:secrets");
      const connections = await connectionsFor(object, observe, showsSecrets, call);
      const { members } = object.status;
      const engineOf = (member: Member) => textOf(seal.spec(id, member.sealedSpec)["database_type"], "");
      const response = {
        ...pipelineFields(object, observe),
        services: members.map(({ resourceName }) => resourceName),
        members: members.map((member) => memberMessage(member, roleOf(object, member), engineOf(member), observe)),
        connections,
      };
      if (!showsSecrets || connections.length === 0) return response;
      return auditedActs.read(auditOf(call, "pipeline.reveal-passwords", compositionKind.name, id), () => response);
    },

    deletePipeline: ({ id }, call) =>
      deleteComposition(
        deps,
        () => require(id, call),
        (pipeline) => message(pipeline, call),
        call,
      ),
  };
  return serve(PipelineService, handlers);
}

/** The connection details of a service. Without `showsSecrets` they contain no password, and no URI with one. */
function connectionsOf(role: string, outputs: DatabaseOutputs, showsSecrets: boolean): Connections {
  const format = Object.hasOwn(formats, role) ? formats[role] : undefined;
  return (format ?? uri)(outputs, showsSecrets);
}
