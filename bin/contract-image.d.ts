/** Descriptors of protos in the JSON of buf. */
export interface ProtoImage {
  readonly file: readonly { readonly name: string }[];
}

/** The image of the agreed protos; those of others are taken from the current one. */
export function agreedImage(now: ProtoImage): ProtoImage;
