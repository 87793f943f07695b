import type { FieldFault } from "@holdfast/common/errors.ts";
import type { Attachment, ResourceSpec } from "#resource-kind/resource-kind.ts";
import { attachmentsMax } from "../app/app.ts";
import { loginUsername } from "../hosting/login-form.ts";
import { portFault, sizeFault } from "../hosting/hosting-request.ts";
import { imageReferenceForm } from "../hosting/image-reference.ts";

/** A normalized spec of an app. Absent members get their default when the app is created. */
export interface AppResourceSpec extends ResourceSpec {
  readonly image: string;
  readonly port: number;
  readonly env: Readonly<Record<string, string>>;
  readonly secret_env: Readonly<Record<string, string>>;
  readonly command: readonly string[];
  readonly attachments?: readonly WrittenAttachment[];
  readonly plan_name: string;
  readonly storage_size_gb: number;
  readonly replicas: number;
  readonly health_check_path?: string;
  readonly storage_tier?: string;
  readonly zone?: string;
  /** Sign-in in front of the app; absent: none. */
  readonly auth?: typeof loginForm;
  /** Domain of the user, in lower case. */
  readonly domain?: string;
}

/** An attached resource: its logical name, or the name with the prefix of the variables. */
type WrittenAttachment = string | { readonly resource: string; readonly prefix?: string };

/** Alternative names of members in descriptors. */
const shortNames: ReadonlyMap<string, string> = new Map([
  ["image_ref", "image"],
  ["plan", "plan_name"],
  ["storage_gb", "storage_size_gb"],
]);

/** Members whose change is a deployment of the app. */
export const deployedMembers = [
  "image",
  "port",
  "env",
  "secret_env",
  "command",
  "health_check_path",
  "auth",
  "domain",
  "attachments",
] as const;

const defaults = {
  port: 8_080,
  env: {},
  secret_env: {},
  command: [],
  plan_name: "tier-1",
  storage_size_gb: 10,
  replicas: 1,
} as const;

/** A sign-in by the login form, as normalized specs have it. */
export const loginForm = { type: "login_form", username: loginUsername } as const;

/** The spec with full names of members, and with defaults. */
export function normalizedApp(spec: ResourceSpec): ResourceSpec {
  const { auth, domain, ...rest } = Object.fromEntries(
    Object.entries(spec).map(([name, value]) => [shortNames.get(name) ?? name, value]),
  );
  const type = typeof auth === "object" && auth !== null && "type" in auth ? auth.type : auth;
  // The schema refuses other values.
  const normalized = type === loginForm.type ? loginForm : auth;
  return {
    ...defaults,
    ...rest,
    ...(type !== "none" && normalized !== undefined && { auth: normalized }),
    ...(domain !== undefined && {
      domain: typeof domain === "string" ? domain.toLowerCase().replace(/\.$/, "") : domain,
    }),
  };
}

export function attachmentsOf({ attachments = [] }: ResourceSpec): readonly Attachment[] {
  return (attachments as readonly WrittenAttachment[]).map((each) => {
    if (typeof each === "string") return { name: each };
    return { name: each.resource, ...(each.prefix !== undefined && { prefix: each.prefix }) };
  });
}

/** The fault of a resource without a spec, which the schema does not see. */
export function missingImage({ image: name }: ResourceSpec): readonly FieldFault[] {
  if (name !== undefined) return [];
  return [{ field: "image", pointer: "/image", code: "required", detail: "is missing" }];
}

/** The fault of a port that programs cannot have. */
export function portFaults({ port }: ResourceSpec): readonly FieldFault[] {
  const detail = portFault(port as number | undefined);
  return detail === undefined ? [] : [{ field: "port", pointer: "/port", code: "invalid_value", detail }];
}

/** Faults of variables that are too large together. */
export function variableFaults(spec: ResourceSpec): readonly FieldFault[] {
  return (["env", "secret_env"] as const).flatMap((field) => {
    const detail = sizeFault(field, textsOf(spec[field]));
    return detail === undefined ? [] : [{ field, pointer: `/${field}`, code: "too_long", detail }];
  });
}

/** The members that are texts: the schema refuses others. */
function textsOf(variables: unknown): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(variables ?? {}).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  );
}

/** Faults of the attachments. A database has one user for the app, so nothing is attached twice. */
export function attachmentFaults(spec: ResourceSpec): readonly FieldFault[] {
  const names = attachmentsOf(spec).map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice === undefined) return [];
  const detail = `has ${twice} twice`;
  return [{ field: "attachments", pointer: "/attachments", code: "duplicate", detail }];
}

const shortText = (description: string) => ({ type: "string", minLength: 1, maxLength: 40, description });
const image = {
  type: "string",
  minLength: 1,
  maxLength: 512,
  ...imageReferenceForm,
  description: "Image in the platform's registry, such as shop:1.",
};
const plan = shortText("Plan of each machine; default: tier-1.");
const gigabytes = {
  type: "integer",
  minimum: 1,
  maximum: 16_384,
  description: "Disk of each machine, in GB; default: 10.",
};
const variables = (description: string) => ({
  type: "object",
  maxProperties: 256,
  propertyNames: { pattern: "^[A-Za-z_][A-Za-z0-9_]{0,127}$" },
  additionalProperties: { type: "string", maxLength: 32_768 },
  description,
});
const authType = { type: "string", enum: ["none", loginForm.type] };
const logicalName = { type: "string", minLength: 1, maxLength: 63 };

/** JSON Schema of the spec as users write it. */
export function appSchema(): Readonly<Record<string, unknown>> {
  return {
    type: "object",
    additionalProperties: false,
    anyOf: [{ required: ["image"] }, { required: ["image_ref"] }],
    properties: {
      image,
      image_ref: image,
      port: { type: "integer", minimum: 1, maximum: 65_535, description: "Port of the program; default: 8080." },
      env: variables("Variables of the program."),
      secret_env: variables("Variables of the program that no response has."),
      command: {
        type: "array",
        maxItems: 32,
        items: { type: "string", maxLength: 1_024 },
        description: "Program and arguments in place of the image's.",
      },
      attachments: {
        type: "array",
        maxItems: attachmentsMax,
        items: {
          anyOf: [
            logicalName,
            {
              type: "object",
              additionalProperties: false,
              required: ["resource"],
              properties: { resource: logicalName, prefix: { type: "string", pattern: "^[A-Z][A-Z0-9_]{0,62}$" } },
            },
          ],
        },
        description: "Resources that the app reaches, which run before it; their connections are its variables.",
      },
      health_check_path: {
        type: "string",
        pattern: "^/[!-~]{0,254}$",
        description: "Path that responds once a release is ready.",
      },
      plan,
      plan_name: plan,
      storage_gb: gigabytes,
      storage_size_gb: gigabytes,
      storage_tier: shortText("Storage tier of the catalog."),
      zone: shortText("Zone of the machines."),
      replicas: { type: "integer", minimum: 1, maximum: 10, description: "Number of machines; default: 1." },
      auth: {
        anyOf: [
          authType,
          {
            type: "object",
            additionalProperties: false,
            required: ["type"],
            properties: { type: authType, username: { type: "string", enum: [loginUsername] } },
          },
        ],
        description: "Sign-in in front of the app; login_form generates the password of the user admin. Default: none.",
      },
      domain: {
        type: "string",
        minLength: 3,
        maxLength: 254,
        description: "Domain of yours, which is served once its TXT record proves it: GET /app-services/{id}/domains.",
      },
    },
    // A member may be given under only one of its names.
    not: {
      anyOf: [
        { required: ["image", "image_ref"] },
        { required: ["plan", "plan_name"] },
        { required: ["storage_gb", "storage_size_gb"] },
      ],
    },
  };
}
