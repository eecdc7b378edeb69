// A file of `steadyseg export --stateful` and the state of one stream, on the CPU by OpenVINO: copy this header.
//
// Frames must have the network's size: OpenVINO ignores the antialiasing of the file's own resize. A file that follows
// motion needs OpenCV (WITH_OPENCV); without it use a file of `--motion off`.
#pragma once

#include <openvino/openvino.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>
#ifdef WITH_OPENCV
#include <opencv2/imgproc.hpp>
#include <opencv2/video/tracking.hpp>
#endif

using Tensors = std::map<std::string, ov::Tensor>;
const std::vector<std::string> MAPS = {"label", "confidence", "entropy", "disagreement"};

// The number at a place of JSON text, or all numbers of the list there, whatever its nesting.
inline std::vector<double> numbers(const std::string& json, size_t at = 0) {
    std::vector<double> found;
    int depth = 0;
    for (; at < json.size(); ++at) {
        const char letter = json[at];
        depth += (letter == '[') - (letter == ']');
        if (letter == '-' || (letter >= '0' && letter <= '9')) {
            char* end = nullptr;
            found.push_back(std::strtod(json.c_str() + at, &end));
            at = end - json.c_str() - 1;
        }
        if (depth == 0 && (letter == ']' || !found.empty())) break;
    }
    return found;
}

// The same of the value that stands under a key, after the key `behind` where one is given.
inline std::vector<double> numbers(const std::string& json, const std::string& key, const std::string& behind = "") {
    const size_t start = behind.empty() ? 0 : json.find('"' + behind + '"');
    const size_t at = start == std::string::npos ? start : json.find('"' + key + '"', start);
    if (at == std::string::npos) throw std::runtime_error("the proof has no " + key);
    return numbers(json, json.find(':', at));
}

// The texts of a JSON list; class names are printable, so only quotes and backslashes are escaped.
inline std::vector<std::string> texts(const std::string& json) {
    std::vector<std::string> found;
    for (size_t at = 0; (at = json.find('"', at)) != std::string::npos; ++at) {
        found.emplace_back();
        for (++at; at < json.size() && json[at] != '"'; ++at) found.back() += json[at] == '\\' ? json[++at] : json[at];
    }
    return found;
}

inline std::vector<uint8_t> from_base64(const std::string& text) {
    const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::vector<uint8_t> bytes;
    uint32_t value = 0;
    int bits = 0;
    for (const char letter : text.substr(0, text.find('='))) {
        value = value << 6 | static_cast<uint32_t>(letters.find(letter));
        if ((bits += 6) >= 8) bytes.push_back(value >> (bits -= 8) & 255);
    }
    return bytes;
}

// A file and the state of one stream; everything but the path is read from the file's metadata.
class Client {
public:
    Client(const std::string& path, bool bf16) : model(core.read_model(path)) {
        if (!has("steadyseg_format") || text("kind") != "stream")
            throw std::runtime_error(path + ": no stream; make one with steadyseg export --stateful");
        if (text("streams") != "1" && text("streams") != "null")
            throw std::runtime_error(path + ": computes " + text("streams") + " streams a call, this is a client of one; "
                                     "export without --streams");
        height = numbers(text("input_height"))[0], width = numbers(text("input_width"))[0];
        const int stride = numbers(text("head_stride"))[0];
        state_height = (height + stride - 1) / stride, state_width = (width + stride - 1) / stride;
        classes = texts(text("classes")), moves = text("motion") == "true";
        std::map<std::string, ov::PartialShape> shapes;
        for (const auto& input : model->inputs()) {
            auto shape = input.get_partial_shape();
            shape[0] = 1;
            if (input.get_any_name() == "frame") shape[1] = height, shape[2] = width;
            shapes[input.get_any_name()] = shape;
        }
        model->reshape(shapes);
        const auto precision = bf16 ? ov::element::bf16 : ov::element::f32;
        request = core.compile_model(model, "CPU", ov::hint::inference_precision(precision)).create_infer_request();
        for (const auto& input : model->inputs()) {
            const std::string name = input.get_any_name();
            if (name.rfind("state_", 0) != 0) continue;
            auto& [now, next] = states[name];
            now = ov::Tensor(input.get_element_type(), input.get_shape());
            next = ov::Tensor(input.get_element_type(), input.get_shape());
            std::fill_n(static_cast<char*>(now.data()), now.get_byte_size(), 0);
        }
        probability = model->output(MAPS.size()).get_any_name();  // it comes after the four maps
    }

    bool has(const std::string& key) const { return model->has_rt_info("framework", key); }

    std::string text(const std::string& key) const {
        if (!has(key)) throw std::runtime_error("the file's metadata have no " + key);
        return model->get_rt_info<std::string>("framework", key);
    }

    // The maps of the next frame, height x width x 3 bytes of RGB; `gap`: source frames since the last one, 0 to begin
    // anew, as after a seek. They are read by `output`.
    void step(uint8_t* frame, int gap = 1) {
        const size_t h = height, w = width;
        Tensors inputs = {{"frame", {ov::element::u8, {1, h, w, 3}, frame}}};
        inputs["gap"] = scalar(std::max(gap, 1)), inputs["reset"] = scalar(started && gap ? 0 : 1);
        if (moves) add_motion(inputs, frame, started && gap);
        started = true;
        run(inputs);
    }

    static ov::Tensor scalar(float value) {
        ov::Tensor tensor(ov::element::f32, {1, 1});
        *tensor.data<float>() = value;
        return tensor;
    }

    // One call with named inputs; the states go from call to call.
    void run(Tensors inputs) {
        for (auto& [name, pair] : states) {
            inputs[name] = pair.first;
            inputs[name.substr(0, name.size() - 2) + "out"] = pair.second;
            std::swap(pair.first, pair.second);
        }
        for (auto& [name, tensor] : inputs) request.set_tensor(name, tensor);
        request.infer();
    }

    ov::Tensor output(const std::string& name) {
        return request.get_tensor(name == "probability" ? probability : name);
    }

    int height, width, state_height, state_width;
    bool moves;
    std::vector<std::string> classes;

private:
    // Where each pixel was in the last frame, in 1/32 pixels, and how far that is to be believed.
    void add_motion(Tensors& inputs, uint8_t* frame, bool goes_on) {
#ifdef WITH_OPENCV
        const size_t h = state_height, w = state_width;
        ov::Tensor motion(ov::element::f32, {1, h, w, 2}), trust(ov::element::f32, {1, h, w});
        cv::Mat grey, source(state_height, state_width, CV_32FC2, motion.data<float>());
        cv::Mat weight(state_height, state_width, CV_32F, trust.data<float>());
        cv::cvtColor(cv::Mat(height, width, CV_8UC3, frame), grey, cv::COLOR_RGB2GRAY);
        if (grey.size() != source.size()) cv::resize(grey, grey, source.size(), 0, 0, cv::INTER_AREA);
        cv::Mat flow = cv::Mat::zeros(grey.size(), CV_32FC2), before, apart;
        if (goes_on) dis->calc(grey, last, flow);
        for (int y = 0; y < grey.rows; ++y)
            for (int x = 0; x < grey.cols; ++x) {
                const cv::Vec2f moved = (flow.at<cv::Vec2f>(y, x) + cv::Vec2f(x, y)) * 32;
                source.at<cv::Vec2f>(y, x) = {std::nearbyint(moved[0]) / 32, std::nearbyint(moved[1]) / 32};
            }
        cv::remap(goes_on ? last : grey, before, source, cv::noArray(), cv::INTER_LINEAR, cv::BORDER_REPLICATE);
        cv::absdiff(grey, before, apart);
        apart.convertTo(apart, CV_32F);
        cv::blur(apart, apart, {5, 5});
        cv::exp(apart.mul(apart) / -400, weight);
        last = grey;
        inputs["motion"] = motion, inputs["trust"] = trust;
#else
        (void)inputs, (void)frame, (void)goes_on;
        throw std::runtime_error("this file follows motion, and the program was built without OpenCV; export it with "
                                 "--motion off");
#endif
    }

#ifdef WITH_OPENCV
    cv::Ptr<cv::DISOpticalFlow> dis = cv::DISOpticalFlow::create(cv::DISOpticalFlow::PRESET_ULTRAFAST);
    cv::Mat last;
#endif
    bool started = false;
    ov::Core core;
    std::shared_ptr<ov::Model> model;
    ov::InferRequest request;
    std::map<std::string, std::pair<ov::Tensor, ov::Tensor>> states;
    std::string probability;
};
