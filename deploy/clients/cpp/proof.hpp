// The proof that a file carries; docs/reference/files.md describes its entries.
#pragma once

#include "plan.hpp"
#include "steadyseg_client.hpp"

#include <cstdio>
#include <cstring>

class Proof {
public:
    explicit Proof(Client& client) : client(client), plan(plan_of(client)) {
        const size_t turns = plan.turns.size(), pixels = size_t(client.height) * client.width;
        const size_t values = client.classes.size() * client.state_height * client.state_width;
        const size_t row = up(values, plan.sizes.at("probability_step"));
        size_t pictures = 0;
        for (const auto& turn : plan.turns) pictures = std::max(pictures, size_t(turn[0]) + 1);
        load("frame", pictures * blocks("block", client.height, client.width) * 3, 1);
        if (client.moves) {
            const size_t moved = turns * blocks("motion_block", client.state_height, client.state_width);
            load("motion", moved * 2, 2), load("trust", moved, 1);
        }
        load("probability", plan.draws ? row : turns * row, 4);
        if (plan.draws) load("probability_variance", row, 4);
        for (const std::string& name : plan.draws ? std::vector<std::string>() : MAPS)
            load(name, turns * up(pixels, plan.sizes.at("map_step")), 1);
    }

    // Prints what was found beside its bounds, and returns the exit code.
    int verify(bool reduced) {
        bool holds = true;
        std::string shown;
        for (const auto& [name, value] : plan.draws ? moments_apart() : values_apart()) {
            const double bound = (reduced ? plan.reduced_bounds : plan.bounds).at(name);
            holds = holds && (name == "labels_equal" ? value >= bound : value <= bound);  // NaN is within no bound
            char text[200];
            std::snprintf(text, sizeof text, ", %s %.6g (bound %g)", name.c_str(), value, bound);
            shown += text;
        }
        const std::string version = ov::get_openvino_version().buildNumber;
        std::printf("%s by OpenVINO %s: %s\n", holds ? "equal" : "NOT EQUAL", version.c_str(), shown.substr(2).c_str());
        return holds ? 0 : 1;
    }

private:
    static Plan plan_of(const Client& client) {
        if (!client.has("proof"))
            throw std::runtime_error("this file carries no proof; export it with --stateful --with-proof");
        return Plan(client.json("proof"));
    }

    static size_t up(size_t length, size_t step) { return (length + step - 1) / step; }

    size_t blocks(const char* block, int h, int w) const {
        return up(h, plan.sizes.at(block)) * up(w, plan.sizes.at(block));
    }

    // Reads the stored values of a name: as many little-endian numbers of 1 (uint8), 2 (int16) or 4 (float32) bytes.
    void load(const std::string& name, size_t count, size_t size) {
        const auto bytes = from_base64(client.text("proof_" + name), count * size, "proof_" + name);
        std::vector<float>& values = stored[name];
        values.resize(count);
        for (size_t at = 0; at < count; ++at) {
            uint32_t bits = 0;
            for (size_t byte = 0; byte < size; ++byte) bits |= uint32_t(bytes.at(at * size + byte)) << 8 * byte;
            values.at(at) = size == 2 ? static_cast<int16_t>(bits) : static_cast<float>(bits);
            if (size == 4) std::memcpy(&values.at(at), &bits, 4);
            if (!std::isfinite(values.at(at))) refuse("proof_" + name, "a value is not finite");
        }
    }

    // Each stored value, of `size` numbers, `block` times along both axes, cut to h x w.
    template <class Put>
    void enlarge(const char* name, size_t number, size_t size, size_t block, size_t h, size_t w, Put put) {
        const std::vector<float>& from = stored.at(name);
        const size_t rows = up(h, block), columns = up(w, block);
        for (size_t y = 0; y < h; ++y)
            for (size_t x = 0; x < w; ++x) {
                const size_t place = ((number * rows + y / block) * columns + x / block) * size;
                for (size_t one = 0; one < size; ++one)
                    put((y * w + x) * size + one, from.at(place + one), one ? y : x);
            }
    }

    void run(size_t number) {
        const auto& [picture, gap, reset] = plan.turns.at(number);
        const size_t h = client.height, w = client.width, sh = client.state_height, sw = client.state_width;
        ov::Tensor frame(ov::element::u8, {1, h, w, 3});
        uint8_t* pixels = frame.data<uint8_t>();
        enlarge("frame", picture, 3, plan.sizes.at("block"), h, w,
                [&](size_t place, float value, size_t) { pixels[place] = static_cast<uint8_t>(value); });
        Tensors inputs = {{"frame", frame}};
        inputs["gap"] = Client::scalar(gap), inputs["reset"] = Client::scalar(reset);
        if (client.moves) {
            ov::Tensor motion(ov::element::f32, {1, sh, sw, 2}), trust(ov::element::f32, {1, sh, sw});
            float *to = motion.data<float>(), *weight = trust.data<float>();
            const size_t block = plan.sizes.at("motion_block");
            enlarge("motion", number, 2, block, sh, sw,
                    [&](size_t place, float value, size_t origin) { to[place] = origin + value / 32; });
            enlarge("trust", number, 1, block, sh, sw,
                    [&](size_t place, float value, size_t) { weight[place] = value / 255; });
            inputs["motion"] = motion, inputs["trust"] = trust;
        }
        client.run(inputs);
    }

    // The sampled values of an output.
    std::vector<double> sampled(const std::string& name) {
        const ov::Tensor tensor = client.output(name);
        const bool is_map = tensor.get_element_type() == ov::element::u8;
        const size_t step = plan.sizes.at(is_map ? "map_step" : "probability_step");
        std::vector<double> found;
        for (size_t at = 0; at < tensor.get_size(); at += step)
            found.push_back(is_map ? tensor.data<uint8_t>()[at] : tensor.data<float>()[at]);
        return found;
    }

    std::map<std::string, double> values_apart() {
        std::map<std::string, double> sum, found = {{"probability_max", 0}, {"map_levels_mean", 0}};
        for (size_t turn = 0; turn < plan.turns.size(); ++turn) {
            run(turn);
            for (const std::string name : {"label", "confidence", "entropy", "disagreement", "probability"}) {
                const auto got = sampled(name);
                for (size_t at = 0; at < got.size(); ++at) {
                    const double apart = std::abs(got.at(at) - stored.at(name).at(turn * got.size() + at));
                    sum[name] += name == "label" ? apart == 0 : apart;
                    if (name == "probability" && !(apart <= found["probability_max"])) found["probability_max"] = apart;
                }
            }
        }
        const auto mean = [&](const std::string& name) { return sum.at(name) / stored.at(name).size(); };
        for (const std::string name : {"confidence", "entropy", "disagreement"})
            found["map_levels_mean"] = std::max(found["map_levels_mean"], mean(name));
        found["labels_equal"] = mean("label"), found["probability_mean"] = mean("probability");
        return found;
    }

    // Random dropout: mean and variance of the last turn's probabilities over draws.
    std::map<std::string, double> moments_apart() {
        const auto &expected = stored.at("probability"), &variance = stored.at("probability_variance");
        std::vector<double> sum(expected.size()), squares(expected.size());
        const double draws = plan.draws;
        for (int draw = 0; draw < plan.draws; ++draw) {
            for (size_t turn = 0; turn < plan.turns.size(); ++turn) run(turn);
            const auto got = sampled("probability");
            for (size_t at = 0; at < got.size(); ++at)
                sum.at(at) += got.at(at), squares.at(at) += got.at(at) * got.at(at);
        }
        double z2 = 0, moving = 0, ours = 0, theirs = 0;
        for (size_t at = 0; at < sum.size(); ++at) {
            const double mean = sum.at(at) / draws, spread = (squares.at(at) - sum.at(at) * mean) / (draws - 1);
            ours += spread, theirs += variance.at(at);
            if (spread + variance.at(at) <= 1e-8) continue;
            z2 += std::pow(mean - expected.at(at), 2) / ((spread + variance.at(at)) / draws), ++moving;
        }
        return {{"mean_z2", z2 / moving}, {"variance_difference", std::abs(ours / theirs - 1)}};
    }

    Client& client;
    const Plan plan;
    std::map<std::string, std::vector<float>> stored;
};
