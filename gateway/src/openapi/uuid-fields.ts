import { type DescField, ScalarType } from "@bufbuild/protobuf";
import { rulesOf } from "../json/field-rules.ts";

/** Names of fields that look like ids but are not a UUID in any message, with their format. */
// biome-ignore format: a table, aligned so that it reads as one
const otherNames: ReadonlyMap<string, string> = new Map([
  ["client_id",        "other providers choose the format"],
  ["email_or_user_id", "or an address"],
  ["object_id",        "an id of any kind of object, such as a user"],
  ["query_id",         "a number of the engine"],
  ["query_run_id",     "a sealed session of the engine"],
  ["resource_id",      "an id of any kind of resource"],
  ["task_id",          "a sealed reference"],
  ["template_id",      "a name"],
  ["update_ids",       "a hash of an image"],
  ["user_id",          "a user name; end users of an app have the option uuid"],
]);

/** Other fields that are not a UUID, as `Message.field`, with their format. */
// biome-ignore format: a table, aligned so that it reads as one
const otherFields: ReadonlyMap<string, string> = new Map([
  ["ApiKey.id",                    "hfk_ and a random part"],
  ["CreatedApiKey.id",             "hfk_ and a random part"],
  ["DeleteApiKeyRequest.id",       "hfk_ and a random part"],
  ["RotateApiKeyRequest.id",       "hfk_ and a random part"],
  ["AuthEvent.id",                 "a number of the app's database"],
  ["CreatedUser.id",               "a user name"],
  ["FilesKey.access_key_id",       "HF and random letters and digits"],
  ["Attachment.access_key_id",     "HF and random letters and digits"],
  ["DeleteSessionRequest.id",      "or all"],
  ["DeleteTokenRequest.id",        "the first token of an installation has its hash as id"],
  ["Token.id",                     "the first token of an installation has its hash as id"],
  ["GetPipelineTemplateRequest.id", "a name"],
  ["PipelineTemplate.id",          "a name"],
  ["Me.id",                        "a user name, a key or a token"],
  ["PendingUpdate.id",             "a hash of an image"],
  ["PendingUpdateSummary.id",      "a hash of an image"],
  ["TokenResource.id",             "of any kind of object"],
]);

/**
 * True for a field whose value is a UUID: one with the name of an id, except those in the tables, and one with the
 * option `uuid`.
 */
export function isUuid(field: DescField): boolean {
  const { name, parent, scalar, fieldKind } = field;
  if (scalar !== ScalarType.STRING || fieldKind === "map") return false;
  const isId = /(^|_)ids?$/.test(name) && !otherNames.has(name) && !otherFields.has(`${parent.name}.${name}`);
  return isId || rulesOf(field).uuid;
}

/** All exceptions, for the test that each field exists. */
export const otherFormats = { names: otherNames, fields: otherFields };
