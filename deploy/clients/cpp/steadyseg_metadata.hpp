// The entries of a file's metadata, which may come from anyone: JSON, base64, and the limits of `steadyseg`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

struct Json {
    enum Kind { NOTHING, TRUTH, WHOLE, NUMBER, TEXT, LIST, OBJECT } kind = NOTHING;
    double number = 0;  // of TRUTH too
    std::string text;   // as written, of a NUMBER or WHOLE
    std::vector<Json> list;
    std::map<std::string, Json> parts;
};

[[noreturn]] inline void refuse(const std::string& name, const std::string& fault) {
    throw std::runtime_error("malformed " + name + " (" + fault + "); export it again with steadyseg export");
}

// Parses an entry of at most 2^20 bytes. Exports escape quotes and backslashes alone, so other escapes are refused.
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
        if (depth > 32) fail();
        if (opens == '"') return found.kind = Json::TEXT, found.text = quoted(), found;
        if (opens != '{' && opens != '[') return word();
        found.kind = opens == '{' ? Json::OBJECT : Json::LIST;
        const char closes = opens == '{' ? '}' : ']';
        ++at;
        for (bool first = true; peek() != closes; first = false) {
            if (!first) take(',');
            if (opens == '[') {
                found.list.push_back(value(depth + 1));
                continue;
            }
            const std::string key = quoted();
            take(':');
            found.parts[key] = value(depth + 1);
        }
        take(closes);
        return found;
    }

    Json word() {
        const size_t end = std::min(json.find_first_of(" \t\r\n,]}", at), json.size());
        Json found;
        found.text = json.substr(at, end - at);
        if (found.text != "null") found.kind = Json::TRUTH, found.number = found.text == "true";
        if (found.text != "null" && found.text != "true" && found.text != "false") {
            found.kind = number_kind(found.text);
            found.number = std::strtod(found.text.c_str(), nullptr);
        }
        at = end;
        return found;
    }

    Json::Kind number_kind(const std::string& word) const {
        size_t end = word[0] == '-';
        const auto skip_digits = [&] {
            const size_t start = end;
            end = std::min(word.find_first_not_of("0123456789", start), word.size());
            if (end == start) fail();
        };
        const bool has_zero = word[end] == '0';
        const size_t start = end;
        skip_digits();
        if (has_zero && end > start + 1) fail();
        const size_t whole_end = end;
        if (word[end] == '.') ++end, skip_digits();
        if (word[end] == 'e' || word[end] == 'E') {
            end += word[end + 1] == '-' || word[end + 1] == '+' ? 2 : 1;
            skip_digits();
        }
        if (end != word.size()) fail();
        return whole_end == end ? Json::WHOLE : Json::NUMBER;
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
    const bool is_number = value.kind == Json::WHOLE || value.kind == Json::NUMBER;
    refuse(name, (is_number ? value.text.substr(0, 40) : "no number") + ", expected a whole number from " +
                     std::to_string(low) + " to " + std::to_string(high));
}

inline const Json& part(const Json& value, const std::string& key, const std::string& name) {
    const auto found = value.parts.find(key);
    if (found == value.parts.end()) refuse(name, "it has no " + key);
    return found->second;
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

// Exactly `size` bytes; the length of the text is compared first, so that a wrong text allocates nothing.
inline std::vector<uint8_t> from_base64(const std::string& text, size_t size, const std::string& name) {
    const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const size_t padding = (3 - size % 3) % 3;
    if (text.size() != (size + padding) / 3 * 4 || text.find('=') != (padding ? text.size() - padding : text.npos))
        refuse(name, "expected base64 of " + std::to_string(size) + " bytes");
    std::vector<uint8_t> bytes;
    bytes.reserve(size);
    uint32_t value = 0;
    int bits = 0;
    for (size_t at = 0; at < text.size() - padding; ++at) {
        const size_t place = letters.find(text[at]);
        if (place == letters.npos) refuse(name, "no base64 at character " + std::to_string(at));
        value = value << 6 | static_cast<uint32_t>(place);
        if ((bits += 6) >= 8) bytes.push_back(value >> (bits -= 8) & 255);
    }
    if (padding == 2 && text.back() != '=') refuse(name, "no base64 at its end");
    return bytes;
}
