// The entries of a file's metadata, which may come from anyone: JSON, and the limits of `steadyseg`.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

struct Json {
    enum Kind { NOTHING, TRUTH, WHOLE, TEXT, LIST } kind = NOTHING;
    double number = 0;  // of TRUTH too
    std::string text;   // as written, of a WHOLE
    std::vector<Json> list;
};

[[noreturn]] inline void refuse(const std::string& name, const std::string& fault) {
    throw std::runtime_error("malformed " + name + " (" + fault + "); export it again with steadyseg export");
}

// Parses an entry of at most 2^20 bytes that is a whole number, a truth, a text or a list of these. Exports escape quotes
// and backslashes alone, so other escapes are refused.
class JsonParser {
public:
    JsonParser(const std::string& json, const std::string& name) : json(json), name(name) {}

    Json parse() {
        if (json.size() > 1 << 20) refuse(name, "more than 1048576 bytes");
        Json found = value(0);
        if (peek() != '\0' || at != json.size()) fail();
        return found;
    }

private:
    Json value(int depth) {
        Json found;
        const char opens = peek();
        if (depth > 1) fail();
        if (opens == '"') return found.kind = Json::TEXT, found.text = quoted(), found;
        if (opens != '[') return word();
        found.kind = Json::LIST, ++at;
        while (peek() != ']') {
            if (!found.list.empty()) take(',');
            found.list.push_back(value(depth + 1));
        }
        take(']');
        return found;
    }

    Json word() {
        const size_t end = std::min(json.find_first_of(" \t\r\n,]}", at), json.size());
        Json found;
        found.text = json.substr(at, end - at);
        if (found.text == "true" || found.text == "false") {
            found.kind = Json::TRUTH, found.number = found.text == "true";
        } else if (found.text != "null") {
            const size_t sign = found.text[0] == '-', first = found.text.find_first_not_of("0123456789", sign);
            const bool has_zero = found.text[sign] == '0' && found.text.size() > sign + 1;
            if (found.text.size() == sign || first != std::string::npos || has_zero) fail();
            found.kind = Json::WHOLE, found.number = std::strtod(found.text.c_str(), nullptr);
        }
        at = end;
        return found;
    }

    std::string quoted() {
        std::string found;
        for (take('"'); letter() != '"'; ++at) {
            if (letter() == '\\' && (++at, std::string("\"\\/").find(letter()) == std::string::npos)) fail();
            found += letter();
        }
        ++at;
        return found;
    }

    // The next letter or space; the end and control characters, which JSON allows in no text, are faults.
    char letter() const {
        if (at >= json.size() || static_cast<unsigned char>(json[at]) < ' ') fail();
        return json[at];
    }

    char peek() {
        at = std::min(json.find_first_not_of(" \t\r\n", at), json.size());
        return at < json.size() ? json[at] : '\0';
    }

    void take(char wanted) {
        if (peek() != wanted || at == json.size()) fail();
        ++at;
    }

    [[noreturn]] void fail() const { refuse(name, "no JSON at character " + std::to_string(at)); }

    const std::string &json, &name;
    size_t at = 0;
};

inline int whole(const Json& value, const std::string& name, int low, int high) {
    if (value.kind == Json::WHOLE && value.number >= low && value.number <= high) return static_cast<int>(value.number);
    refuse(name, (value.kind == Json::WHOLE ? value.text.substr(0, 40) : "no number") + ", expected a whole number from " +
                     std::to_string(low) + " to " + std::to_string(high));
}

// A pixel of a label has 8 bits and the void id is none of the classes, so there are at most 255.
inline std::vector<std::string> class_names(const Json& value) {
    std::set<std::string> names;
    std::vector<std::string> found;
    for (const Json& one : value.list) {
        const auto is_start = [](char byte) { return (byte & 0xC0) != 0x80; };  // of a character in UTF-8
        bool fits = one.kind == Json::TEXT && !one.text.empty() && names.insert(one.text).second;
        fits = fits && std::count_if(one.text.begin(), one.text.end(), is_start) <= 100;
        for (size_t at = 0; at < one.text.size(); ++at) {  // control characters, U+0080 to U+009F among them
            const auto byte = static_cast<unsigned char>(one.text[at]);
            const bool is_late = byte == 0xC2 && static_cast<unsigned char>(one.text[at + 1]) < 0xA0;
            fits = fits && byte >= ' ' && byte != 0x7F && !is_late;
        }
        if (!fits) refuse("classes", "names are different texts of 1 to 100 printable characters");
        found.push_back(one.text);
    }
    if (found.size() < 2 || found.size() > 255) refuse("classes", "expected a list of 2 to 255 names");
    return found;
}

