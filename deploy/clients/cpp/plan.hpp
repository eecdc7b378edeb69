// A file's proof: the inputs of its turns, the stored values, and the largest differences.
#pragma once

#include "steadyseg_metadata.hpp"

#include <array>

// The entry `proof`. It is checked as in `steadyseg verify`: nothing reads past an end or computes for ever.
struct Plan {
    explicit Plan(const Json& given) {
        const auto named = [&](const char* name) -> const Json& { return part(given, name, "proof"); };
        if (given.parts.size() != 9) refuse("proof", "expected an object of 9 parts");
        whole(named("version"), "version", 1, 1);
        for (const Json& turn : named("turns").list) {
            if (turn.list.size() != 3) refuse("proof", "a turn is [frame, gap, reset]");
            turns.push_back({turn_part(turn, 0), turn_part(turn, 1), turn_part(turn, 2)});
        }
        if (turns.empty() || turns.size() > MAX_TURNS) refuse("proof", "expected 1 to 100 turns");
        draws = whole(named("draws"), "draws", 0, 1000);
        if (draws == 1) refuse("draws", "one draw has no variance");
        for (const char* name : {"block", "motion_block", "map_step", "probability_step"})
            sizes[name] = whole(named(name), name, 1, 1 << 20);
        bounds = limits(named("bounds")), reduced_bounds = limits(named("reduced_bounds"));
    }

    static constexpr int MAX_TURNS = 100;
    std::vector<std::array<int, 3>> turns;  // frame, gap, reset
    int draws;
    std::map<std::string, int> sizes;
    std::map<std::string, double> bounds, reduced_bounds;

private:
    static int turn_part(const Json& turn, size_t place) {
        return whole(turn.list.at(place), "turn", 0, MAX_TURNS);
    }

    static std::map<std::string, double> limits(const Json& given) {
        std::map<std::string, double> found;
        for (const char* name : {"labels_equal", "probability_mean", "probability_max", "map_levels_mean",
                                 "familiarity_max", "mean_z2", "variance_difference"}) {
            const Json& bound = part(given, name, "bounds");
            const bool is_number = bound.kind == Json::WHOLE || bound.kind == Json::NUMBER;
            if (!is_number || bound.number < 0 || bound.number > 1e6)
                refuse("bounds", std::string(name) + " is no number from 0 to 1000000");
            found[name] = bound.number;
        }
        if (given.parts.size() != found.size()) refuse("bounds", "expected 7");
        return found;
    }
};
