/** Replaces the text of a statement that may have literals. */
export const withheld = "-- withheld: this text cannot be shown without its literals";
