import { createRandom } from "../random.ts";

/** Type codes of GGUF's values. */
const [typeUint32, typeInt32, typeFloat32, typeString, typeArray] = [4, 5, 6, 8, 9] as const;
const version = 3;
const alignment = 32;
/** Kinds of tokens by llama.cpp's numbers. */
const [normal, unknown, control, byte] = [1, 2, 3, 6] as const;

const width = 64;
const layers = 2;
const heads = 4;
const hidden = 128;
const context = 2_048;

interface Tensor {
  readonly name: string;
  /** The innermost dimension first, as in GGUF. */
  readonly shape: readonly number[];
  readonly values: Float32Array;
}

/**
 * A complete model in the format of llama.cpp: a Llama of two layers with seeded random weights over a vocabulary of
 * bytes. Its output is random; how it is served and counted is real.
 */
export function tinyGguf(seed: number): Buffer {
  const tokens = ["<unk>", "<s>", "</s>", ...Array.from({ length: 256 }, (_, at) => byteToken(at)), "\u2581"];
  const kinds = [unknown, control, control, ...Array.from({ length: 256 }, () => byte), normal];
  const { next } = createRandom(seed);
  const filled = (name: string, ...shape: number[]): Tensor => {
    const count = shape.reduce((product, each) => product * each, 1);
    return { name, shape, values: Float32Array.from({ length: count }, () => (next() - 0.5) * 0.4) };
  };
  const ones = (name: string): Tensor => ({ name, shape: [width], values: new Float32Array(width).fill(1) });
  const tensors = [
    filled("token_embd.weight", width, tokens.length),
    ...Array.from({ length: layers }, (_, layer) => `blk.${layer}`).flatMap((block) => [
      ones(`${block}.attn_norm.weight`),
      filled(`${block}.attn_q.weight`, width, width),
      filled(`${block}.attn_k.weight`, width, width),
      filled(`${block}.attn_v.weight`, width, width),
      filled(`${block}.attn_output.weight`, width, width),
      ones(`${block}.ffn_norm.weight`),
      filled(`${block}.ffn_gate.weight`, width, hidden),
      filled(`${block}.ffn_up.weight`, width, hidden),
      filled(`${block}.ffn_down.weight`, hidden, width),
    ]),
    ones("output_norm.weight"),
    filled("output.weight", width, tokens.length),
  ];
  const facts: readonly (readonly [string, Buffer])[] = [
    ["general.architecture", text("llama")],
    ["general.name", text("smoke")],
    ["general.alignment", uint32(alignment)],
    ["llama.context_length", uint32(context)],
    ["llama.embedding_length", uint32(width)],
    ["llama.block_count", uint32(layers)],
    ["llama.feed_forward_length", uint32(hidden)],
    ["llama.attention.head_count", uint32(heads)],
    ["llama.attention.head_count_kv", uint32(heads)],
    ["llama.attention.layer_norm_rms_epsilon", float32(1e-5)],
    ["llama.rope.dimension_count", uint32(width / heads)],
    ["tokenizer.ggml.model", text("llama")],
    ["tokenizer.ggml.tokens", array(typeString, tokens.map(bytesOf))],
    [
      "tokenizer.ggml.scores",
      array(
        typeFloat32,
        tokens.map(() => numberOf("float", 0)),
      ),
    ],
    [
      "tokenizer.ggml.token_type",
      array(
        typeInt32,
        kinds.map((kind) => numberOf("int32", kind)),
      ),
    ],
    ["tokenizer.ggml.unknown_token_id", uint32(0)],
    ["tokenizer.ggml.bos_token_id", uint32(1)],
    ["tokenizer.ggml.eos_token_id", uint32(2)],
  ];
  let offset = 0;
  const offsets = tensors.map(({ name, shape, values }) => {
    const place = [
      bytesOf(name),
      numberOf("int32", shape.length),
      ...shape.map((each) => uint64(each)),
      // 32-bit floats.
      numberOf("int32", 0),
      uint64(offset),
    ];
    offset += padded(values.byteLength);
    return Buffer.concat(place);
  });
  const head = Buffer.concat([
    Buffer.from("GGUF"),
    numberOf("int32", version),
    uint64(tensors.length),
    uint64(facts.length),
    ...facts.flatMap(([name, value]) => [bytesOf(name), value]),
    ...offsets,
  ]);
  const data = tensors.map(({ values }) => withPadding(Buffer.from(values.buffer)));
  return Buffer.concat([withPadding(head), ...data]);
}

function byteToken(value: number): string {
  return `<0x${value.toString(16).toUpperCase().padStart(2, "0")}>`;
}

function numberOf(kind: "int32" | "float", value: number): Buffer {
  const bytes = Buffer.alloc(4);
  if (kind === "float") bytes.writeFloatLE(value);
  else bytes.writeInt32LE(value);
  return bytes;
}

function uint64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

function bytesOf(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([uint64(bytes.length), bytes]);
}

const text = (value: string) => Buffer.concat([numberOf("int32", typeString), bytesOf(value)]);
const uint32 = (value: number) => Buffer.concat([numberOf("int32", typeUint32), numberOf("int32", value)]);
const float32 = (value: number) => Buffer.concat([numberOf("int32", typeFloat32), numberOf("float", value)]);

function array(type: number, values: readonly Buffer[]): Buffer {
  return Buffer.concat([numberOf("int32", typeArray), numberOf("int32", type), uint64(values.length), ...values]);
}

function padded(bytes: number): number {
  return Math.ceil(bytes / alignment) * alignment;
}

function withPadding(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, Buffer.alloc(padded(bytes.length) - bytes.length)]);
}
