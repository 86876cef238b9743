// JSON Schemas of the files that Ebb reads: for editors (completion, descriptions, underlined mistakes) and for whoever
// writes such files by program. Draft 7, which editors and validators all know.
//
// What a schema can say, it says as the reader has it: keys, types, words, ranges of single values, what must be there.
// What needs two values at once (a batch that the ranks divide) only the reader knows, and its messages name line,
// column and cure, which a validator's do not; so Ebb itself reads with its readers, and tests hold the two together.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ebb {

/// job, model, cluster, plan, timeline.
std::vector<std::string_view> file_schema_names();

/// The document of one of them.
std::string file_schema(std::string_view name);

}  // namespace ebb
