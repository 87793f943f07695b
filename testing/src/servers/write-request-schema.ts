import { createFileRegistry, type DescMessage, fromBinary, type Message } from "@bufbuild/protobuf";
import {
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
  FileDescriptorProtoSchema,
} from "@bufbuild/protobuf/wkt";
import { create } from "@bufbuild/protobuf";

interface Series {
  readonly labels: readonly { readonly name: string; readonly value: string }[];
  readonly samples: readonly { readonly value: number; readonly timestamp: bigint }[];
}

const optional = Label.OPTIONAL;
const repeated = Label.REPEATED;

/** The subset of Prometheus' remote.proto and types.proto that remote write 1.0 requires; decoded by protobuf-es. */
const schema: DescMessage = loaded();

/** Series of a WriteRequest, by a third-party decoder. Throws for invalid bytes, and for unknown fields. */
export function readWriteRequest(bytes: Uint8Array): readonly Series[] {
  const message: Message & { timeseries?: Series[] } = fromBinary(schema, bytes);
  if (message.$unknown !== undefined) throw new Error("the request has fields that a WriteRequest has not");
  return message.timeseries ?? [];
}

function loaded(): DescMessage {
  const file = create(FileDescriptorProtoSchema, {
    name: "prometheus/remote.proto",
    package: "prometheus",
    syntax: "proto3",
    messageType: [
      { name: "Label", field: [field("name", 1, Type.STRING, optional), field("value", 2, Type.STRING, optional)] },
      {
        name: "Sample",
        field: [field("value", 1, Type.DOUBLE, optional), field("timestamp", 2, Type.INT64, optional)],
      },
      {
        name: "TimeSeries",
        field: [
          { ...field("labels", 1, Type.MESSAGE, repeated), typeName: ".prometheus.Label" },
          { ...field("samples", 2, Type.MESSAGE, repeated), typeName: ".prometheus.Sample" },
        ],
      },
      {
        name: "WriteRequest",
        field: [{ ...field("timeseries", 1, Type.MESSAGE, repeated), typeName: ".prometheus.TimeSeries" }],
      },
    ],
  });
  const found = createFileRegistry(file, () => undefined).getMessage("prometheus.WriteRequest");
  if (found === undefined) throw new Error("the message is not in its file");
  return found;
}

function field(name: string, number: number, type: Type, label: Label) {
  return { name, number, type, label, jsonName: name };
}
