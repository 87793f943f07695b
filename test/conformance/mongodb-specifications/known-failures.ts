/** Tests that fail for one reason, as `FILE: TEST`. */
export interface KnownFailures {
  readonly reason: string;
  readonly tests: readonly string[];
}

/** Failures of FerretDB 2.7 by their reasons, in the order of their number. */
export const knownFailures: readonly KnownFailures[] = [
  {
    reason: "There are no collations.",
    tests: [
      "aggregate-collation: Aggregate with collation",
      "bulkWrite-collation: BulkWrite with delete operations and collation",
      "bulkWrite-collation: BulkWrite with update operations and collation",
      "count-collation: Count documents with collation",
      "count-collation: Deprecated count with collation",
      "deleteMany-collation: DeleteMany when many documents match with collation",
      "deleteOne-collation: DeleteOne when many documents matches with collation",
      "distinct-collation: Distinct with a collation",
      "find-collation: Find with a collation",
      "findOneAndDelete-collation: FindOneAndDelete when one document matches with collation",
      "findOneAndReplace-collation: FindOneAndReplace when one document matches with collation returning the document after modification",
      "findOneAndUpdate-collation: FindOneAndUpdate when many documents match with collation returning the document before modification",
      "replaceOne-collation: ReplaceOne when one document matches with collation",
      "updateMany-collation: UpdateMany when many documents match with collation",
      "updateOne-collation: UpdateOne when one document matches with collation",
    ],
  },
  {
    reason: "findAndModify has no hint.",
    tests: [
      "findOneAndDelete-hint: FindOneAndDelete with hint document",
      "findOneAndDelete-hint: FindOneAndDelete with hint string",
      "findOneAndReplace-hint: FindOneAndReplace with hint document",
      "findOneAndReplace-hint: FindOneAndReplace with hint string",
      "findOneAndUpdate-hint: FindOneAndUpdate with hint document",
      "findOneAndUpdate-hint: FindOneAndUpdate with hint string",
    ],
  },
  {
    reason: "There is no stage $listLocalSessions.",
    tests: [
      "db-aggregate-rawdata: Aggregate with rawData option on less than 8.2.0 - ignore argument",
      "db-aggregate: Aggregate with $listLocalSessions",
      "db-aggregate: Aggregate with $listLocalSessions and allowDiskUse",
    ],
  },
  {
    reason: "An _id of null is replaced by a new ObjectId.",
    tests: [
      "create-null-ids: inserting _id with type null via bulkWrite",
      "create-null-ids: inserting _id with type null via insertMany",
      "create-null-ids: inserting _id with type null via insertOne",
    ],
  },
  {
    reason: "A pipeline that begins with $documents has no $merge: error 115.",
    tests: ["aggregate-merge-errorResponse: aggregate $merge DuplicateKey error is accessible"],
  },
  {
    reason: "Unknown options are errors.",
    tests: ["count-rawdata: Deprecated count with rawData option on less than 8.2.0 - ignore argument"],
  },
];
