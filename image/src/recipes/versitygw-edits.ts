import type { SourceEdit } from "../artifact.ts";
import { uploadEdits } from "./versitygw-upload-edits.ts";

const validNames = "s3api/utils/name_validate.go";
const bodyReader = "s3api/middlewares/body-reader.go";

/** The error of a key that a file system cannot have as it is. */
const invalidKey = "s3err.S3Error(utils.ErrObjectKey)";

/**
 * Changes of versitygw 1.8.0 without which a client takes an object for stored that is not, or changes another object
 * than it names. Each is to be dropped with the release that has it; `before` is unique in its file, so that a release
 * with other text does not build.
 */
export const versitygwEdits: readonly SourceEdit[] = [
  // A key is a path, which the server cleans: `a//b`, `a/./b` and `a/x/../b` would be the object `a/b`, also where a
  // policy permits only keys with another prefix. `.sgwtmp` has the parts of unfinished uploads.
  {
    file: validNames,
    before: "package utils\n",
    after: `package utils

import (
	"net/http"
	"strings"

	"github.com/versity/versitygw/s3err"
)

// ErrObjectKey is the error of a key for which IsObjectNameValid is false.
var ErrObjectKey = s3err.APIError{
	Code:           "InvalidArgument",
	Description:    "Between slashes, a key has at least one character, and not just . or .. or .sgwtmp.",
	HTTPStatusCode: http.StatusBadRequest,
}

// StoredEncoding is a Content-Encoding without aws-chunked, which is only about the transfer of the request.
func StoredEncoding(header string) string {
	kept := []string{}
	for _, token := range strings.Split(header, ",") {
		token = strings.TrimSpace(token)
		if token != "" && !strings.EqualFold(token, "aws-chunked") {
			kept = append(kept, token)
		}
	}
	return strings.Join(kept, ", ")
}
`,
  },
  {
    file: validNames,
    before: `	switch clean(name) {
	case "", ".", "..", "/":
		return false
	}

	return isObjectLocal(name)
`,
    after: `	for _, segment := range strings.Split(strings.TrimSuffix(name, "/"), "/") {
		switch segment {
		case "", ".", "..", ".sgwtmp":
			return false
		}
	}

	return isObjectLocal(name)
`,
  },
  {
    file: "s3api/middlewares/bucket-object-name-validator.go",
    before: "			return s3err.GetAPIError(s3err.ErrBadRequest)\n",
    after: `			return ${invalidKey}\n`,
  },
  {
    file: "s3api/middlewares/object-post-auth.go",
    before: `fields["key"])
			return s3err.GetAPIError(s3err.ErrBadRequest)
`,
    after: `fields["key"])
			return ${invalidKey}
`,
  },
  {
    file: "s3api/controllers/bucket-post.go",
    before: `	for i, obj := range dObj.Objects {
		if checkErrs[i] == nil {
`,
    after: `	for i, obj := range dObj.Objects {
		if checkErrs[i] == nil && (obj.Key == nil || !utils.IsObjectNameValid(*obj.Key)) {
			checkErrs[i] = ${invalidKey}
		}
		if checkErrs[i] == nil {
`,
  },
  // All files of a form would have this text in their keys, and replace each other.
  {
    file: "s3api/utils/multipart_reader.go",
    before: "			fr := &finalFileReader{\n",
    after: `			sentName := params["filename"]
			sentName = sentName[strings.LastIndexAny(sentName, "/\\\\")+1:]
			fields["key"] = strings.ReplaceAll(fields["key"], "\${filename}", sentName)

			fr := &finalFileReader{
`,
  },
  // Readers would get the encoding of the transfer for the one of the content.
  {
    file: "s3api/controllers/object-put.go",
    before: `string(types.TaggingDirectiveCopy)))
	contentType := ctx.Get("Content-Type", defaultContentType)
	contentEncoding := ctx.Get("Content-Encoding")
`,
    after: `string(types.TaggingDirectiveCopy)))
	contentType := ctx.Get("Content-Type", defaultContentType)
	contentEncoding := utils.StoredEncoding(ctx.Get("Content-Encoding"))
`,
  },
  {
    file: "s3api/controllers/object-put.go",
    before: `	key := strings.TrimPrefix(ctx.Path(), fmt.Sprintf("/%s/", bucket))
	contentType := ctx.Get("Content-Type", defaultContentType)
	contentEncoding := ctx.Get("Content-Encoding")
`,
    after: `	key := strings.TrimPrefix(ctx.Path(), fmt.Sprintf("/%s/", bucket))
	contentType := ctx.Get("Content-Type", defaultContentType)
	contentEncoding := utils.StoredEncoding(ctx.Get("Content-Encoding"))
`,
  },
  {
    file: "s3api/controllers/object-post.go",
    before: `	contentEncoding := ctx.Get("Content-Encoding")\n`,
    after: `	contentEncoding := utils.StoredEncoding(ctx.Get("Content-Encoding"))\n`,
  },
  // A client that disconnects during a PUT would replace the object by the part that it sent.
  {
    file: bodyReader,
    before: `		rdr = ctx.Request().BodyStream()
`,
    after: `		rdr = wholeBody(ctx)
`,
  },
  {
    file: "s3api/middlewares/public-bucket.go",
    before: "utils.ContextKeyBodyReader.Set(ctx, ctx.Request().BodyStream())",
    after: "wrapBodyReader(ctx, func(r io.Reader) io.Reader { return r })",
  },
  {
    file: bodyReader,
    before: `	"github.com/gofiber/fiber/v3"
	"github.com/versity/versitygw/s3api/utils"
)
`,
    after: `	"github.com/gofiber/fiber/v3"
	"github.com/versity/versitygw/s3api/utils"
	"github.com/versity/versitygw/s3err"
)

// wholeBodyReader fails at the end of a body with less bytes than the Content-Length of its request.
type wholeBodyReader struct {
	rdr     io.Reader
	missing int64
}

func (r *wholeBodyReader) Read(buffer []byte) (int, error) {
	n, err := r.rdr.Read(buffer)
	r.missing -= int64(n)
	if r.missing > 0 && (err == io.EOF || err == io.ErrUnexpectedEOF) {
		return n, s3err.GetAPIError(s3err.ErrContentLengthMismatch)
	}
	return n, err
}

// wholeBody is the body of the request; nil without one.
func wholeBody(ctx fiber.Ctx) io.Reader {
	rdr := ctx.Request().BodyStream()
	if rdr == nil {
		return nil
	}
	return &wholeBodyReader{rdr: rdr, missing: int64(ctx.Request().Header.ContentLength())}
}
`,
  },
  ...uploadEdits,
];
