import { type DescMessage, getOption } from "@bufbuild/protobuf";
import { field as fieldRules } from "@holdfast/proto/holdfast/v1/options_pb.ts";
import { expect, test } from "vitest";
import { organizationServices, platformServices } from "../support/api/api-methods.ts";

/**
 * Secrets that callers provide, and why none of them can follow a changed destination. `bound`:
 * `kernel/secrets/destined-secret.ts` encrypts it for its destination, and a change of the destination requires the
 * secret again.
 */
// biome-ignore format: a table, aligned so that it reads as one
const given: Readonly<Record<string, string>> = {
  "holdfast.v1.ChangePasswordRequest.current_password":   "compared with a hash",
  "holdfast.v1.ChangePasswordRequest.new_password":       "stored as a hash",
  "holdfast.v1.CreateAuthUserRequest.email":              "an address, in the app's own database",
  "holdfast.v1.DeleteAuthUserRequest.email_or_user_id":   "an address, not stored",
  "holdfast.v1.DeployProjectRequest.descriptor":          "given completely each time, and opened for its own members",
  "holdfast.v1.EraseAuthUserRequest.email":               "an address, for the app's own database",
  "holdfast.v1.ListAuthUsersRequest.email":               "an address, not stored",
  "holdfast.v1.NewAuthSmtp.password":                     "bound",
  "holdfast.v1.PlanProjectRequest.descriptor":            "not stored",
  "holdfast.v1.PutAuthIdpProviderRequest.client_secret":  "bound",
  "holdfast.v1.PutInferenceProviderRequest.api_key":      "bound",
  "holdfast.v1.SetUpUserRequest.password":                "stored as a hash",
  "holdfast.v1.SetUpUserRequest.token":                   "compared with a hash",
  "holdfast.v1.TestAuthSmtpRequest.to":                   "an address, not stored",
};

/** Configurations of any shape: their secrets are fields of kind `secret`, which are bound. */
// biome-ignore format: a table, aligned so that it reads as one
const shapeless: Readonly<Record<string, string>> = {
  "holdfast.v1.CreateMetricsExportRequest.configuration": "bound",
  "holdfast.v1.UpdateMetricsExportRequest.configuration": "bound",
};

const inputs = [...organizationServices, ...platformServices]
  .flatMap((service) => service.methods)
  .map(({ input }) => input);

test("every secret that a request can have is in the table of secrets", () => {
  expect(fieldsOf(inputs, (field) => getOption(field, fieldRules).sensitive)).toEqual(Object.keys(given).toSorted());
});

test("every configuration of any shape that a request can have is in the table", () => {
  const isShapeless = ({ message }: Field) => message?.typeName === "google.protobuf.Struct";
  expect(fieldsOf(inputs, isShapeless)).toEqual(Object.keys(shapeless).toSorted());
});

type Field = DescMessage["fields"][number];

/** Names of fields of these messages and of messages in them. */
function fieldsOf(messages: readonly DescMessage[], isMeant: (field: Field) => boolean): string[] {
  const seen = new Set<DescMessage>();
  const found = new Set<string>();
  const visit = (message: DescMessage): void => {
    if (seen.has(message)) return;
    seen.add(message);
    if (message.typeName.startsWith("google.protobuf.")) return;
    for (const field of message.fields) {
      if (isMeant(field)) found.add(`${message.typeName}.${field.name}`);
      if (field.message) visit(field.message);
    }
  };
  messages.forEach(visit);
  return [...found].toSorted();
}
