import {
  type ConsumerFacet,
  type ResourceKind,
  type ResourceSpec,
  specChanges,
} from "@holdfast/controller/resource-kind/resource-kind.ts";

/** Changes in place, by the member that changes, as specified for apps. */
const actions = { image: "redeploy_app", env: "redeploy_app", plan_name: "scale_app" } as const;

const never = () => {
  throw new Error("no resource of the fixture is created here");
};

/** Dependencies of a fixture resource, which its spec names as an app's spec does. */
export const fixtureConsumer: ConsumerFacet = {
  attachmentsOf: ({ attachments = [] }) =>
    (attachments as (string | { name: string; prefix?: string })[]).map((each) =>
      typeof each === "string" ? { name: each } : each,
    ),
  variablesOf: ({ env = {} }) => Object.keys(env as object),
  wire: never,
};

/** A kind with every action that consumes outputs of others, as an app will. Its resources are the model's. */
export const fixtureKind: ResourceKind = {
  kind: "fixture",
  aliases: { gadget: { plan_name: "tier-1" } },
  scopes: ["notes:write"],
  consumer: fixtureConsumer,
  schema: () => ({
    type: "object",
    additionalProperties: false,
    properties: {
      image: { type: "string" },
      port: { type: "integer" },
      env: { type: "object", additionalProperties: { type: "string" } },
      plan_name: { type: "string" },
      attachments: { type: "array", items: { type: ["string", "object"] } },
    },
  }),
  normalize: (spec) => ({ plan_name: "tier-1", ...spec }),
  faults: () => [],
  unavailable: () => undefined,
  monthlyCost: ({ plan_name: plan }) => [
    { description: String(plan), cents: plan === "tier-1" ? 1_000 : 2_000, isCeiling: false },
  ],
  quotaOf: () => ({}),
  portOf: ({ port }) => port as number | undefined,
  diff(before: ResourceSpec, after: ResourceSpec) {
    const changes = specChanges(before, after).map((each) =>
      each.path.startsWith("env.") ? { ...each, isSecret: true as const } : each,
    );
    if (changes.length === 0) return { change: "unchanged" };
    const kinds = new Set(changes.map(({ path }) => actionOf(path)));
    const [action] = kinds;
    return kinds.size === 1 && action !== undefined
      ? { change: "inPlace", action, changes }
      : { change: "recorded", changes };
  },
  act: never,
  create: never,
  mark: never,
  remove: never,
  observe: never,
  outputs: never,
  protectedBy: () => undefined,
  version: () => "",
  subscribe: () => ({ close() {} }),
};

function actionOf(path: string) {
  const [member = ""] = path.split(".");
  return Object.hasOwn(actions, member) ? actions[member as keyof typeof actions] : undefined;
}
