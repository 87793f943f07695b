import { create, type DescMessage, type MessageInitShape, toJson } from "@bufbuild/protobuf";
import { ListValueSchema, type TimestampSchema, ValueSchema } from "@bufbuild/protobuf/wkt";
import { formatTimestamp } from "./timestamp.ts";

/** Encoders of the types whose JSON is not their fields; throws for types that this API does not use. */
export function encodeWellKnown(message: DescMessage): ((value: object) => string) | undefined {
  if (!message.typeName.startsWith("google.protobuf.")) return undefined;
  switch (message.typeName) {
    case "google.protobuf.Timestamp":
      return (value: MessageInitShape<typeof TimestampSchema>) =>
        `"${formatTimestamp(value.seconds ?? 0n, value.nanos ?? 0)}"`;
    case "google.protobuf.Empty":
      return () => "{}";
    case "google.protobuf.Value":
      return (value) => JSON.stringify(toJson(ValueSchema, create(ValueSchema, value)));
    case "google.protobuf.Struct":
      // Protobuf-es shows a Struct inside a message as the plain object.
      return (value) => JSON.stringify(value);
    case "google.protobuf.ListValue":
      return (value) => JSON.stringify(toJson(ListValueSchema, create(ListValueSchema, value)));
    default:
      throw new Error(`${message.typeName} has no JSON in this API`);
  }
}
